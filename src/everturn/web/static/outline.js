// The outline of a session and the matches in it. Only the rows in view are drawn, so that thousands of turns are no load.
import { onKey } from "./keys.js";
import { fetchPart, fragment } from "./parts.js";
import { say, tell } from "./saying.js";
import { goToAddress } from "./turns.js";

const ROW = 28; // pixels, as in the style sheet
const WINDOW = 200; // entries fetched at a time
const PAUSE = 25; // ms without a key before a search starts

export function watchOutline(page, turns) {
  const nav = document.getElementById("outline");
  const list = document.createElement("div");
  const entries = new Map();
  const asked = new Set();
  let total = Number(nav.dataset.total);
  let current = 0;
  nav.append(list);

  const load = async (number) => {
    const first = Math.floor((number - 1) / WINDOW) * WINDOW + 1;
    if (asked.has(first)) return;
    asked.add(first);
    try {
      const answer = await fetch(`/api/outline?session=number:${page.dataset.session}&first=${first}&last=${first + WINDOW - 1}`);
      for (const one of (await answer.json()).items) entries.set(one.turn, one);
      draw();
    } catch { asked.delete(first); }
  };
  const draw = () => {
    list.style.height = `${total * ROW}px`;
    const first = Math.max(1, Math.floor(nav.scrollTop / ROW) - 4);
    const last = Math.min(total, first + Math.ceil(nav.clientHeight / ROW) + 8);
    if (total) { load(first); load(Math.max(first, last)); }
    const rows = [];
    for (let number = first; number <= last; number += 1) rows.push(rowOf(number, entries.get(number), number === current));
    list.replaceChildren(...rows);
  };
  const rowOf = (number, entry, isCurrent) => {
    const row = document.createElement("a");
    row.href = `${location.pathname}?turn=${number}#t${number}`;
    row.style.top = `${(number - 1) * ROW}px`;
    row.tabIndex = isCurrent || (!current && number === 1) ? 0 : -1; // one stop for Tab; j and k continue from there
    if (isCurrent) row.setAttribute("aria-current", "true");
    row.append(span("number", number), span("words", entry?.words || "…"));
    if (entry?.edits) row.append(span("edits", `✎${entry.edits}`, `${entry.edits} edited`));
    if (entry?.errors) row.append(span("failed", `✗${entry.errors}`, `${entry.errors} failed`));
    if (entry?.compacted) row.append(span("compacted", "◆", "context compacted"));
    if (entry) row.title = entry.words;
    return row;
  };
  turns.addEventListener("turn", (event) => {
    if (event.detail === current) return;
    current = event.detail;
    const top = (current - 1) * ROW;
    if (top < nav.scrollTop || top > nav.scrollTop + nav.clientHeight - 2 * ROW) nav.scrollTop = top - nav.clientHeight / 2;
    draw();
  });
  turns.addEventListener("grown", (event) => {
    for (const first of asked) if (first + WINDOW > total) asked.delete(first);
    total = event.detail;
    draw();
  });
  nav.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(nav);
  watchFind(page, nav);
}

function span(name, text, label) {
  const made = document.createElement("span");
  made.className = name;
  made.textContent = text;
  if (label) { made.title = label; made.setAttribute("aria-label", label); made.setAttribute("role", "img"); }
  return made;
}

// Matches are found on the server: what is not on the page is found too.
function watchFind(page, nav) {
  const form = page.querySelector(".seek");
  const field = form.elements.q;
  const place = document.getElementById("matches");
  const steps = [document.getElementById("match-before"), document.getElementById("match-behind")];
  let waiting = 0;
  let busy = false;
  let stale = false;
  let shown = ""; // the words of the matches on the page
  let mine = 0;
  let at = -1;

  const links = () => [...place.querySelectorAll(".matches a")];
  const look = async () => {
    const words = field.value.trim();
    const asked = ++mine;
    at = -1;
    if (words) {
      try {
        const got = await fetchPart(`${form.getAttribute("action")}?q=${encodeURIComponent(words)}`);
        if (asked !== mine) return;
        place.replaceChildren(fragment(got.text));
        tell(place.querySelector(".hint")?.textContent || "");
      } catch { say("The server does not respond"); }
    } else place.replaceChildren();
    shown = words;
    place.hidden = !words;
    nav.hidden = Boolean(words);
    for (const one of steps) one.hidden = !links().length;
    highlight(null, []);
  };
  const step = (by) => {
    const all = links();
    if (!all.length) return;
    at = (at + by + all.length) % all.length;
    show(all);
  };
  const show = async (all) => {
    all.forEach((one, number) => one.toggleAttribute("aria-current", number === at));
    const link = all[at];
    link.scrollIntoView({ block: "nearest" });
    await goToAddress(link.getAttribute("href"));
    if (!link.isConnected) return;  // another search has replaced the matches meanwhile
    highlight(document.querySelector(".wanted"), [...link.querySelectorAll("mark")].map((one) => one.textContent));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    if (shown !== field.value.trim()) await look();
    step(1);
  });
  // One search at a time: what is typed meanwhile is searched for when the answer is there, so that a pause can be short.
  const lookAgain = async () => {
    if (busy) { stale = true; return; }
    busy = true;
    do { stale = false; await look(); } while (stale);
    busy = false;
  };
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(lookAgain, PAUSE); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && field.value) { field.value = ""; look(); }
  });
  place.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const all = links();
    at = all.indexOf(link);
    show(all);
  });
  steps[0].addEventListener("click", () => step(-1));
  steps[1].addEventListener("click", () => step(1));
  onKey("n", () => step(1));
  onKey("N", () => step(-1));
}

function highlight(box, words) {
  if (!globalThis.CSS?.highlights) return;
  const ranges = [];
  const wanted = words.map((one) => one.toLowerCase()).filter(Boolean);
  const walk = box ? document.createTreeWalker(box, NodeFilter.SHOW_TEXT) : null;
  for (let node = walk?.nextNode(); node && ranges.length < 500; node = walk.nextNode()) {
    const text = node.data.toLowerCase();
    for (const word of wanted) {
      for (let from = text.indexOf(word); from >= 0; from = text.indexOf(word, from + word.length)) {
        const range = new Range();
        range.setStart(node, from);
        range.setEnd(node, from + word.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
