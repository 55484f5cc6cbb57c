// What changes while a page is open. One tab of a browser listens to the server and tells the others, because a browser keeps
// only a few connections open to one server.
const listeners = [];
let isBehind = false;

export function onChange(deed) {
  listeners.push(deed);
}

export function listen() {
  if (!listeners.length) return;
  const channel = globalThis.BroadcastChannel ? new BroadcastChannel("everturn-live") : null;
  // Of the page as it was read: what changed before this tab listened is noticed at the first event.
  let last = Number(document.querySelector("meta[name=everturn-change]")?.content ?? -1);
  channel?.addEventListener("message", (event) => { last = event.data.change; hear(); });
  const open = () => new Promise(() => { // never settled: this tab listens as long as it is there
    const source = new EventSource("/events");
    source.addEventListener("message", (event) => {
      const told = JSON.parse(event.data);
      if (last >= 0 && told.change !== last) { hear(); channel?.postMessage(told); }
      last = told.change;
    });
  });
  if (channel && navigator.locks) navigator.locks.request("everturn-live", open).catch(() => undefined);
  else open();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isBehind) hear(); });
}

// A page that nobody sees asks for what is new when somebody looks again.
function hear() {
  isBehind = document.hidden;
  if (!isBehind) for (const deed of listeners) deed();
}
