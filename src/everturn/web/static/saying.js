// One line at the foot of the page, also read aloud.
let going = 0;

export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  place.classList.add("on");
  clearTimeout(going);
  going = setTimeout(() => place.classList.remove("on"), 2500);
}

// The same for those who listen: nothing is seen of it.
export function tell(text) {
  const place = document.getElementById("said");
  if (!place.classList.contains("on")) place.textContent = text;
}

// A change: with the token of this run, which no other site knows.
export async function change(address, body) {
  const token = document.querySelector("meta[name=everturn-token]").content;
  const answer = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Everturn-Token": token },
    body: JSON.stringify(body),
  });
  const said = await answer.json().catch(() => ({ error: "the server does not answer; reload the page" }));
  if (!answer.ok) throw new Error(said.error || "the request failed");
  return said;
}
