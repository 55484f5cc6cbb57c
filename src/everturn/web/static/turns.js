// The turns of a session: more are loaded as one scrolls, in both directions, and those far away are dropped again.
// A chunk is one answer of the server; it names the addresses of what is before and behind it.
import { fetchPart, fragment } from "./parts.js";
import { say } from "./saying.js";

const AHEAD = 1800; // pixels
const MOST = 9000; // elements
let place = null;
let working = Promise.resolve();
let seen = { address: "", tag: "" };

export function watchTurns(root) {
  place = root;
  let asked = false;
  const soon = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; fill(); tellTurn(); });
  };
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  addEventListener("hashchange", goToHash);
  addEventListener("popstate", goToHash);
  document.addEventListener("click", stay);
  goToHash().then(soon);
}

// Loads what is near the edges of the window. One request at a time.
function fill() {
  working = working.then(async () => {
    for (let n = 0; n < 20; n += 1) {
      const behind = place.lastElementChild?.getBoundingClientRect().bottom < innerHeight + AHEAD && await extend("behind");
      const before = place.getBoundingClientRect().top > -AHEAD && await extend("before");
      if (!behind && !before) return;
    }
  }).catch(() => say("The server does not respond"));
  return working;
}

async function extend(side) {
  const isBehind = side === "behind";
  const chunk = isBehind ? place.lastElementChild : place.firstElementChild;
  if (!chunk?.dataset[side]) return false;
  const got = await fetchPart(chunk.dataset[side]);
  const fresh = fragment(got.text).querySelector(".chunk");
  if (!fresh || (isBehind ? place.lastElementChild : place.firstElementChild) !== chunk) return false;
  keepPlace(() => {
    dropLink(chunk, side);
    dropLink(fresh, isBehind ? "before" : "behind");
    if (isBehind) place.append(fresh);
    else place.prepend(fresh);
    prune(isBehind);
  });
  return true;
}

function dropLink(chunk, side) {
  chunk.querySelector(side === "behind" ? ":scope > .more > [data-more]" : ":scope > .more > [data-earlier]")?.parentElement.remove();
  if (side === "behind") chunk.querySelector(":scope > .end")?.remove();
}

function prune(fromTop) {
  while (place.children.length > 1 && place.getElementsByTagName("*").length > MOST) {
    const far = fromTop ? place.firstElementChild : place.lastElementChild;
    const box = far.getBoundingClientRect();
    if (fromTop ? box.bottom > -AHEAD : box.top < innerHeight + AHEAD) return;
    far.remove();
  }
}

// What is in the window stays where it is, whatever happens above it.
function keepPlace(change) {
  const anchor = turnInView();
  const before = anchor?.getBoundingClientRect().top ?? 0;
  change();
  if (anchor?.isConnected) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
}

function topEdge() {
  return document.querySelector(".toolbar")?.getBoundingClientRect().bottom ?? 60;
}

function turnInView() {
  const edge = topEdge();
  const turns = [...place.querySelectorAll(":scope > .chunk > .turn")];
  return turns.find((one) => one.getBoundingClientRect().bottom > edge + 24) || turns.at(-1);
}

const numberOf = (turn) => Number(/^t(\d+)/.exec(turn?.id || "")?.[1] || 0);

export function currentTurn() {
  const marked = place.querySelector(".turn.at");
  const box = marked?.getBoundingClientRect();
  return numberOf(box && box.bottom > topEdge() && box.top < innerHeight ? marked : turnInView());
}

function tellTurn() {
  const turn = turnInView();
  if (turn) place.dispatchEvent(new CustomEvent("turn", { detail: numberOf(turn) }));
}

export function moveTurn(by) {
  const marked = place.querySelector(".turn.at");
  const at = currentTurn();
  const isBegun = marked && numberOf(marked) === at;
  return goToTurn(Math.max(1, at + (isBegun || by < 0 ? by : 0)));
}

export function lastTurn() {
  return Number(place.closest("[data-turns-total]").dataset.turnsTotal);
}

export async function goToTurn(number) {
  const wanted = Math.min(number, lastTurn());
  if (wanted < 1) return;
  history.replaceState(null, "", `${location.pathname}?turn=${wanted}#t${wanted}`);
  await goToHash();
}

export async function goToAddress(address) {
  history.pushState(null, "", address);
  await goToHash();
}

// Shows what the address names: `#t900` a turn, `#m900` a message, `#m900-2` its second part. Loads its page if it is not there.
async function goToHash() {
  const given = new URLSearchParams(location.search);
  const hash = location.hash || (given.has("turn") ? `#t${given.get("turn")}` : "");
  const found = /^#([tm])([1-9][0-9]{0,8})(?:-\d+)?$/.exec(hash);
  if (!found) return;
  if (!document.getElementById(hash.slice(1))) {
    const asked = found[1] === "t" ? `?turn=${found[2]}` : `?message=${found[2]}`;
    try {
      const got = await fetchPart(location.pathname + asked);
      const fresh = fragment(got.text).querySelector(".chunk");
      if (!fresh) return say("No such turn");
      place.replaceChildren(fresh);
    } catch { return say("The server does not respond"); }
  }
  reveal(hash);
  await fill();
  tellTurn();
}

function reveal(hash) {
  const target = document.getElementById(hash.slice(1));
  if (!target) return;
  const turn = target.closest("[data-turns] > .chunk > .turn");
  for (const one of place.querySelectorAll(".turn.at")) one.classList.toggle("at", one === turn);
  turn?.classList.add("at");
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const shown = target.matches("span") ? target.closest(".call") : target; // a result: with what it is the result of
  place.querySelector(".wanted")?.classList.remove("wanted");
  if (!target.matches(".turn")) shown.classList.add("wanted");
  shown.scrollIntoView({ behavior: "instant", block: "start" });
}

// Links to turns and messages of this session do not leave the page.
function stay(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
  const to = new URL(link.href, location.href);
  if (to.origin !== location.origin || to.pathname !== location.pathname) return;
  const found = /^#([tm])(\d+)(?:-\d+)?$/.exec(to.hash);
  if (!found) return;
  event.preventDefault();
  const isWhole = link.getAttribute("href").includes("?");
  goToAddress(to.pathname + (isWhole ? to.search : `?${found[1] === "t" ? "turn" : "message"}=${found[2]}`) + to.hash);
}

// What is new in a session that goes on: put behind what is there, if its end is on the page.
export function grow() {
  working = working.then(async () => {
    const chunk = place.lastElementChild;
    if (!chunk || chunk.dataset.behind) return;
    const last = [...chunk.querySelectorAll(":scope > .turn")].at(-1);
    const address = `${location.pathname}?${last ? addressOf(last) : "after=0"}`;
    const got = await fetchPart(address, seen.address === address ? seen.tag : "");
    if (got.status !== 200) return;
    seen = { address, tag: got.tag };
    const fresh = fragment(got.text).querySelector(".chunk");
    if (fresh && place.lastElementChild === chunk) putBehind(chunk, last, fresh);
  }).catch(() => undefined); // the server has ended; what is on the page stays
  return working;
}

function addressOf(turn) {
  const [, number, message] = /^t(\d+)(?:-(\d+))?$/.exec(turn.id);
  return message ? `turn=${number}&from=${message}` : `after=${number - 1}`;
}

function putBehind(chunk, last, fresh) {
  if (last?.contains(document.activeElement)) return; // somebody is in it: the rest can wait
  const isAtEnd = chunk.getBoundingClientRect().bottom < innerHeight + 80;
  const again = fresh.querySelector(":scope > .turn");
  if (last && again) {
    const open = [...last.querySelectorAll("details")].map((one) => one.open);
    [...again.querySelectorAll("details")].forEach((one, at) => { if (at in open) one.open = open[at]; });
    again.classList.toggle("at", last.classList.contains("at"));
    last.remove();
  }
  dropLink(chunk, "behind");
  dropLink(fresh, "before");
  place.closest("[data-turns-total]").dataset.turnsTotal = fresh.dataset.total;
  chunk.dataset.behind = fresh.dataset.behind;
  chunk.append(...fresh.childNodes);
  if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  place.dispatchEvent(new CustomEvent("grown", { detail: Number(fresh.dataset.total) }));
}
