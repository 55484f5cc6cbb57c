// Exchanging the changing part of a page: while somebody types, when more is wanted, while an agent works.
import { onChange } from "./live.js";
import { say, tell } from "./saying.js";

let asked = 0;

function partOf(address) {
  const url = new URL(address, location.href);
  url.hash = "";
  url.searchParams.set("part", "1");
  return url;
}

export async function fetchPart(address, tag = "") {
  const answer = await fetch(partOf(address), { headers: tag ? { "If-None-Match": tag } : {} });
  return { status: answer.status, tag: answer.headers.get("ETag") || "", text: answer.status === 304 ? "" : await answer.text() };
}

export function fragment(text) {
  const box = document.createElement("template");
  box.innerHTML = text; // of this server, escaped there; the content policy lets nothing in it run
  return box.content;
}

// What takes longer than the page itself comes in when it is there.
export function fillParts() {
  for (const place of document.querySelectorAll("[data-part]")) fill(place);
}

async function fill(place) {
  try {
    const got = await fetchPart(place.dataset.part);
    if (got.status !== 304) place.replaceChildren(fragment(got.text));
    place.dispatchEvent(new Event("filled"));
    if (place.matches(".calendar")) place.scrollLeft = place.scrollWidth; // the newest days, where not all have room
  } catch { /* a page without it is a page */ }
  place.removeAttribute("aria-busy");
}

// As one types: the newest answer counts.
export function watchFilters() {
  const form = document.getElementById("filters");
  const part = document.getElementById("part");
  if (!form) return;
  let waiting = 0;
  const look = async () => {
    const pairs = [...new FormData(form)].filter(([, value]) => value);
    const address = `${form.getAttribute("action")}?${new URLSearchParams(pairs)}`;
    const mine = ++asked;
    part.setAttribute("aria-busy", "true");
    try {
      const { text } = await fetchPart(address);
      if (mine !== asked) return;
      part.replaceChildren(fragment(text));
      history.replaceState(null, "", address);
      tell(`${part.querySelectorAll("[data-keys] a").length} shown`);
    } catch {
      if (mine === asked) say("The server does not respond");
    }
    if (mine === asked) part.removeAttribute("aria-busy");
  };
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(look, 160); };
  form.addEventListener("input", soon);
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); look(); });
}

// A search above other things: its results take their place while there are words.
export function watchResults() {
  const form = document.querySelector("form[data-results]");
  if (!form) return;
  const place = document.getElementById(form.dataset.results);
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const words = form.elements.q.value.trim();
      const mine = ++asked;
      try {
        const got = words ? await fetchPart(`/search?q=${encodeURIComponent(words)}`) : { text: "" };
        if (mine !== asked) return;
        place.replaceChildren(fragment(got.text));
        place.hidden = !words;
        tell(`${place.querySelectorAll("[data-keys] a").length} shown`);
      } catch { say("The server does not respond"); }
    }, 140);
  });
}

// "More" puts what follows behind what is there.
export function watchMore() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[data-more], a[data-earlier]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.matches("[data-turns] > .chunk > .more > a")) return; // loaded as one scrolls
    const place = link.closest(".more");
    try {
      const { text } = await fetchPart(link.href);
      const got = fragment(text);
      const first = got.firstElementChild;
      for (const one of got.querySelectorAll("a[data-more], a[data-earlier], .end")) {
        if (link.matches("[data-more]") ? one.matches("[data-earlier]") : !one.matches("[data-earlier]")) one.closest("p").remove();
      }
      if (link.matches("[data-earlier]")) keepingPlace(place, () => place.replaceWith(got));
      else {
        place.replaceWith(got);
        (first?.querySelector("a") || first)?.focus?.({ preventScroll: true });
      }
    } catch {
      say("The server does not respond");
    }
  });
}

function keepingPlace(place, change) {
  const anchor = place.nextElementSibling;
  const before = anchor?.getBoundingClientRect().top ?? 0;
  change();
  if (anchor) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
}

// A list that is open follows the archive, as long as its first page is looked at and nothing in it has the focus.
export function watchLive() {
  const part = document.querySelector("#part[data-live]");
  if (!part) return;
  let tag = "";
  onChange(async () => {
    if (part.contains(document.activeElement) || part.querySelectorAll(".lines").length > 1) return;
    const mine = asked;
    try {
      const got = await fetchPart(location.href, tag);
      if (got.status !== 200 || mine !== asked) return;
      tag = got.tag;
      part.replaceChildren(fragment(got.text));
    } catch { /* the server has ended; what is on the page stays */ }
  });
}
