// Keys. They mean nothing while somebody types, nor together with Ctrl, Alt or Meta.
const deeds = new Map();
let going = false;

export function onKey(key, deed) {
  deeds.set(key, deed);
}

function isTyping(target) {
  return target.matches("input:not([type=checkbox]), select, textarea") || target.isContentEditable;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" && isTyping(event.target)) event.target.blur();
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (going) {
    going = false;
    const link = document.querySelector(`.bar nav a[data-go="${CSS.escape(event.key)}"]`);
    if (link) location.href = link.href;
    return;
  }
  if (event.key === "g") {
    going = true;
    setTimeout(() => { going = false; }, 1200);
    return;
  }
  const deed = deeds.get(event.key);
  if (!deed) return;
  event.preventDefault();
  deed(event);
});

// Up and down: from the field into what was found, through it, and back.
document.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
  const field = document.querySelector("[data-slash]");
  const links = [...document.querySelectorAll("[data-keys] a")];
  const at = links.indexOf(document.activeElement);
  if (!links.length || (at < 0 && document.activeElement !== field)) return;
  event.preventDefault();
  const next = at + by < 0 ? field || links[0] : links[Math.min(links.length - 1, at + by)];
  next.focus();
});

// From line to line of a list, or from turn to turn.
export function moveMark(by) {
  const turns = [...document.querySelectorAll("[data-turns] > .turn")];
  if (turns.length) {
    const top = document.querySelector(".strip")?.getBoundingClientRect().bottom ?? 60;
    const marked = turns.findIndex((one) => one.classList.contains("at"));
    const seen = turns.findLastIndex((one) => one.getBoundingClientRect().top < top + 24);
    const here = marked >= 0 && isNear(turns[marked]) ? marked : Math.max(seen, by > 0 ? -1 : 0);
    mark(turns, Math.max(0, Math.min(turns.length - 1, here + by)));
    return;
  }
  const links = [...document.querySelectorAll("[data-keys] a")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))].focus();
}

function isNear(turn) {
  const box = turn.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}

export function mark(turns, number) {
  for (const one of turns) one.classList.toggle("at", one === turns[number]);
  turns[number].scrollIntoView({ behavior: "instant" });
  history.replaceState(history.state, "", `#${turns[number].id}`);
}
