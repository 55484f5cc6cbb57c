// The few keys of the self-contained file: j and k go from turn to turn, e opens or closes everything.
// A click on the number of a turn also copies its address. Without this script nothing is missing.
(() => {
  const turns = [...document.querySelectorAll("main > article > .turn")];
  const button = document.createElement("button");
  const tools = document.createElement("div");
  let open = false;

  const unfold = () => {
    open = !open;
    for (const one of document.querySelectorAll("details")) one.open = open;
    button.textContent = open ? "Close all" : "Open all";
  };
  const step = (by) => {
    const top = (one) => one.getBoundingClientRect().top;
    const here = turns.findLastIndex((one) => top(one) < 40);
    const next = turns[Math.max(0, Math.min(turns.length - 1, here + by))];
    if (next) next.scrollIntoView();
  };

  button.type = "button";
  button.textContent = "Open all";
  button.addEventListener("click", unfold);
  tools.className = "tools";
  tools.append(button);
  document.body.append(tools);

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.number");
    if (link && navigator.clipboard) navigator.clipboard.writeText(link.href).catch(() => {});
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "e") unfold();
  });
})();
