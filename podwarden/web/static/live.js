// Keeps the live part of a page true: it reads the same HTML the page was made of, at most once a second,
// when the server says that something changed. Without it the page works by reloading.
import { patch, swap } from "./patch.js";
import { localize, span } from "./times.js";

const live = document.querySelector("[data-live]");
const word = document.getElementById("live-state");
const PAUSE = 1000 * (Number(live?.dataset.live) || 1); // ms between two reads
const LATER = 3000; // ms until a read that failed is tried again
let reading = false, again = false, lastTrue = Date.now(), connected = false, source = null;

function say() {
  const silent = `silent for ${span((Date.now() - lastTrue) / 1000)}`;
  const text = !live ? "" : connected ? "Live" : silent;
  if (word.textContent !== text) word.textContent = text;
  word.classList.toggle("stale", Boolean(live) && !connected);
  word.classList.toggle("still", !live);
}

function here() {
  const address = new URL(location.href);
  address.searchParams.set("only", "live");
  return address.pathname + address.search;
}

async function read() {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const answer = await fetch(here(), { credentials: "same-origin", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401) { leave(); return; }
    if (answer.ok) {
      const html = await answer.text();
      const fresh = new DOMParser().parseFromString(`<div>${html}</div>`, "text/html").body.firstElementChild;
      const stamp = fresh.querySelector("#stamp");
      if (fresh.querySelector("[data-live]")) patch(html); else swap(live, fresh);
      if (stamp) document.getElementById("count-queue").textContent = stamp.dataset.queued;
      lastTrue = Date.now();
      connected = source?.readyState === EventSource.OPEN;
    } else if (answer.status === 404) {
      connected = false; // it was deleted: what is shown stays, and says that it is old
    }
  } catch {
    connected = false;
    setTimeout(read, LATER);
  } finally {
    say();
    setTimeout(() => { reading = false; if (again) { again = false; read(); } }, PAUSE);
  }
}

function leave() {
  location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
}

function listen() {
  source = new EventSource("/api/v1/feed");
  source.addEventListener("open", () => { connected = true; say(); read(); });
  source.addEventListener("change", read);
  source.addEventListener("error", () => {
    connected = false;
    say();
    if (source.readyState === EventSource.CLOSED) { // refused, not cut off: the browser does not try again
      read(); // leads to the login when that is why
      setTimeout(listen, 5000);
    }
  });
}

localize(document);
say();
addEventListener("pagehide", () => source?.close());
if (live) {
  listen();
  setInterval(say, 5000);
}
setInterval(() => localize(document), 15000);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
});
