// The page of a session: its turns, outline and details, marks, folding, links to a turn, following one that grows.
import { onKey } from "./keys.js";
import { onChange } from "./live.js";
import { watchOutline } from "./outline.js";
import { fetchPart, fragment } from "./parts.js";
import { change, say } from "./saying.js";
import { currentTurn, goToTurn, grow, lastTurn, moveTurn, watchTurns } from "./turns.js";

export function sessionPage() {
  const page = document.querySelector(".session-page");
  if (!page) return;
  const turns = page.querySelector("[data-turns]");
  watchOutline(page, turns);
  watchTurns(turns);
  watchMarks(page.dataset.session);
  watchFolding();
  watchMenus();
  watchWidth();
  watchJump(page);
  document.addEventListener("toggle", openInside, { capture: true });
  onKey("y", copyLink);
  onKey("j", () => moveTurn(1));
  onKey("k", () => moveTurn(-1));
  onKey("gg", () => goToTurn(1));
  onKey("G", () => goToTurn(lastTurn()));
  onChange(grow); // a session that goes on grows while it is looked at
}

function watchJump(page) {
  page.querySelector(".jump").addEventListener("submit", (event) => {
    event.preventDefault();
    const number = Number(event.target.elements.turn.value);
    if (number) goToTurn(number);
  });
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
      say(on ? "Starred" : "Star removed");
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
    button.textContent = open ? "Collapse all" : "Expand all";
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
    say("The server does not respond");
  }
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    say(said);
  } catch { say(text); }
}

function copyLink() {
  const turn = currentTurn();
  if (turn) copy(`${location.origin}${location.pathname}?turn=${turn}#t${turn}`, "Link copied");
}

// Menus close when somebody goes on elsewhere.
function watchMenus() {
  const menus = [...document.querySelectorAll("details.menu")];
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (button) copy(button.dataset.copy, "Command copied");
    for (const one of menus) if (!one.contains(event.target)) one.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const one of menus) one.open = false;
  });
}

// On a wide screen the details are beside the conversation, else they are folded.
function watchWidth() {
  const wide = matchMedia("(min-width: 90rem)");
  const details = document.getElementById("details");
  const fit = () => { details.open = wide.matches; };
  wide.addEventListener("change", fit);
  fit();
  const side = document.querySelector(".outline-side");
  document.getElementById("show-outline").addEventListener("click", (event) => {
    event.currentTarget.setAttribute("aria-expanded", String(side.classList.toggle("open")));
  });
}
