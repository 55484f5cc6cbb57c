// Work that takes a while: started by a form, watched until it is done, then its page is drawn again.
import { fetchPart, fragment } from "./parts.js";
import { change, say } from "./saying.js";

export function watchJobs() {
  for (const form of document.querySelectorAll("form[data-job]")) form.addEventListener("submit", (event) => begin(event, form));
  for (const place of document.querySelectorAll("#part, [data-part]")) {
    place.addEventListener("filled", () => watchWithin(place));
    watchWithin(place);
  }
}

function watchWithin(place) {
  const bar = place.querySelector("progress[data-going]");
  if (bar) watch(bar.dataset.going, bar, place);
}

async function begin(event, form) {
  event.preventDefault();
  const chosen = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
  const question = form.querySelector("option:checked")?.dataset.confirm;
  if (question && !confirm(question)) return;
  if (question) chosen.confirmed = true;
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const job = await change(form.dataset.job, chosen);
    const bar = document.createElement("progress");
    bar.setAttribute("aria-label", "Progress");
    form.append(bar);
    await watch(job.id, bar, document.getElementById("part"));
  } catch (error) { say(error.message); }
  button.disabled = false;
}

async function watch(id, bar, place) {
  for (;;) {
    const answer = await fetch(`/api/jobs?id=${encodeURIComponent(id)}`);
    const job = await answer.json();
    if (!answer.ok) return say(job.error);
    if (job.total) { bar.max = job.total; bar.value = job.done; }
    if (job.state === "done" || job.state === "failed") {
      bar.remove();
      if (place) place.replaceChildren(fragment((await fetchPart(place.dataset.part || location.href)).text));
      if (job.error) say(job.error);
      return undefined;
    }
    await new Promise((done) => setTimeout(done, 250));
  }
}
