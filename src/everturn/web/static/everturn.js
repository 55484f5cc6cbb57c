// What a page does beyond being read: keys, exchanging its changing part, keeping marks, watching a job. No page needs it
// to be read.
import { moveMark, onKey } from "./keys.js";
import { fillParts, watchFilters, watchLive, watchMore, watchResults } from "./parts.js";
import { sessionPage } from "./session.js";
import { watchJobs } from "./jobs.js";
import { listen } from "./live.js";

const help = document.getElementById("help");
document.getElementById("help-button").addEventListener("click", () => help.showModal());
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("everturn-theme", root.dataset.theme); } catch { /* only for this page then */ }
});

onKey("?", () => help.showModal());
onKey("/", () => {
  const field = document.querySelector("[data-slash]") || document.querySelector(".bar .find input");
  field.focus();
  field.select();
});
onKey("j", () => moveMark(1));
onKey("k", () => moveMark(-1));

watchJobs();
fillParts();
watchFilters();
watchResults();
watchMore();
watchLive();
sessionPage();
listen();
