// Keys. They mean nothing while somebody types, nor together with Ctrl, Alt or Meta.
const deeds = new Map();
let going = 0;

export function onKey(key, deed) {
  deeds.set(key, deed);
}

function isTyping(target) {
  return target.matches("input:not([type=checkbox]), select, textarea") || target.isContentEditable;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return undefined;
  if (event.key === "Escape" && isTyping(event.target)) event.target.blur();
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return undefined;
  if (going) {
    clearTimeout(going);
    going = 0;
    if (event.key === "g" && deeds.has("gg")) return deeds.get("gg")(event);
    const link = document.querySelector(`.bar nav a[data-go="${CSS.escape(event.key)}"]`);
    if (link) location.href = link.href;
    return undefined;
  }
  if (event.key === "g") { // alone, after a while: to the beginning
    going = setTimeout(() => { going = 0; deeds.get("gg")?.(); }, 900);
    return undefined;
  }
  const deed = deeds.get(event.key);
  if (!deed) return undefined;
  event.preventDefault();
  return deed(event);
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

// From line to line of a list.
export function moveMark(by) {
  const links = [...document.querySelectorAll("[data-keys] a")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))].focus();
}
