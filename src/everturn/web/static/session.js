// The page of a session: its strip of turns, marks, folding, links to a turn, following one that grows.
import { mark, onKey } from "./keys.js";
import { fetchPart, fragment } from "./parts.js";
import { change, say } from "./saying.js";

const OFTEN = 3000;
const SELDOM = 20000;

export function sessionPage() {
  const page = document.querySelector(".session-page");
  if (!page) return;
  goToTurn();
  addEventListener("hashchange", goToTurn);
  document.addEventListener("click", toTurnOnThisPage);
  watchMarks(page.dataset.session);
  watchFolding();
  document.addEventListener("toggle", openInside, { capture: true });
  follow();
  onKey("y", copyLink);
}

// `#t900` of a turn that is not on this page, `#m900` of a message: to the page that has it.
function goToTurn() {
  const message = /^#m([1-9][0-9]{0,8})$/.exec(location.hash);
  if (message) return goToMessage(message[1]);
  const found = /^#t([1-9][0-9]{0,8})$/.exec(location.hash);
  if (!found) return undefined;
  const turns = [...document.querySelectorAll("[data-turns] > .turn")];
  const at = turns.findIndex((one) => `#${one.id}` === location.hash);
  if (at >= 0) mark(turns, at);
  else if (new URLSearchParams(location.search).get("turn") !== found[1]) location.replace(`${location.pathname}?turn=${found[1]}${location.hash}`);
  return undefined;
}

function goToMessage(number) {
  const message = document.getElementById(`m${number}`);
  const given = new URLSearchParams(location.search);
  if (message) {
    for (let fold = message.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const turn = message.closest("[data-turns] > .turn");
    for (const one of document.querySelectorAll("[data-turns] > .turn")) one.classList.toggle("at", one === turn);
    const shown = message.matches("span") ? message.closest(".call") : message; // a result: with what it is the result of
    document.querySelector(".wanted")?.classList.remove("wanted");
    shown.classList.add("wanted");
    shown.scrollIntoView({ behavior: "instant" });
  } else if (given.get("turn") && given.get("message") !== number) {
    location.replace(`${location.pathname}?turn=${given.get("turn")}&message=${number}#m${number}`);
  }
}

function toTurnOnThisPage(event) {
  const link = event.target.closest?.(".minimap a");
  if (!link || event.ctrlKey || event.metaKey) return;
  const hash = new URL(link.getAttribute("href"), location.href).hash;
  if (!document.getElementById(hash.slice(1))) return;
  event.preventDefault();
  location.hash = hash;
  goToTurn();
}

function watchMarks(session) {
  const star = document.getElementById("star");
  const form = document.getElementById("marks");
  const address = `/api/marks?session=number:${session}`;
  const toggle = async () => {
    const on = star.getAttribute("aria-pressed") !== "true";
    try {
      await change(address, { star: on });
      star.setAttribute("aria-pressed", String(on));
      star.firstElementChild.textContent = on ? "★" : "☆";
      say(on ? "Starred" : "Star taken away");
    } catch (error) { say(error.message); }
  };
  star.addEventListener("click", toggle);
  onKey("s", toggle);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      // Only what was edited: a secret in the rest is masked here and would be lost.
      const edited = [form.elements.title, form.elements.note].filter((one) => one.value !== one.defaultValue);
      await change(address, Object.fromEntries(edited.map((one) => [one.name, one.value])));
      location.reload();
    } catch (error) { say(error.message); }
  });
}

function watchFolding() {
  const button = document.getElementById("tools");
  const toggle = () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    for (const one of document.querySelectorAll("[data-turns] details:not(.child)")) one.open = open;
    button.setAttribute("aria-pressed", String(open));
    button.textContent = open ? "Fold all" : "Open all";
  };
  button.addEventListener("click", toggle);
  onKey("t", toggle);
}

// What a subagent did is fetched when somebody wants to see it.
async function openInside(event) {
  const child = event.target;
  if (!child.open || !child.dataset?.inside) return;
  const address = child.dataset.inside;
  delete child.dataset.inside;
  const place = document.createElement("article");
  child.append(place);
  try {
    place.replaceChildren(fragment((await fetchPart(address)).text));
  } catch {
    child.dataset.inside = address;
    place.remove();
    say("The server does not answer");
  }
}

async function copyLink() {
  const turn = document.querySelector(".turn.at") || document.querySelector(".turn");
  if (!turn) return;
  const link = `${location.origin}${location.pathname}?turn=${turn.id.slice(1)}#${turn.id}`;
  try {
    await navigator.clipboard.writeText(link);
    say("Link copied");
  } catch { say(link); }
}

// At the end of a session: what is new is put behind what is there. Looked for often while it goes on, else now and then.
function follow() {
  if (new URLSearchParams(location.search).has("message")) return; // within a turn that is longer than a page
  let tag = "";
  const look = async () => {
    const end = document.querySelector("[data-turns] > .end");
    if (end && !document.hidden) tag = await putBehind(end, tag).catch(() => tag); // the server may have ended
    setTimeout(look, end && "live" in end.dataset ? OFTEN : SELDOM);
  };
  setTimeout(look, OFTEN);
}

async function putBehind(end, tag) {
  const last = end.previousElementSibling?.matches(".turn") ? end.previousElementSibling : null;
  const after = last ? Number(last.id.slice(1)) - 1 : Number(end.dataset.end);
  const got = await fetchPart(`${location.pathname}?after=${after}`, tag);
  if (got.status !== 200) return tag;
  const fresh = fragment(got.text);
  for (const one of fresh.querySelectorAll("a[data-earlier]")) one.closest("p").remove();
  const again = fresh.querySelector(".turn");
  if (last && again) {
    const open = [...last.querySelectorAll("details")].map((one) => one.open);
    [...again.querySelectorAll("details")].forEach((one, at) => { if (open[at]) one.open = true; });
    again.classList.toggle("at", last.classList.contains("at"));
    if (!last.contains(document.activeElement)) last.remove();
    else again.remove(); // somebody is in it: the rest can wait
  }
  end.replaceWith(fresh);
  return got.tag;
}
