// Keeps the live part of a page true. It reads the same HTML that the page was made of, at most once a
// second, when the server says that something changed. Without it the page works by reloading.
"use strict";

const live = document.getElementById("live");
const word = document.getElementById("live-state");
const PAUSE = 1000; // ms between two reads
let reading = false, again = false, lastTrue = Date.now(), connected = false;

function say() {
  const seconds = Math.round((Date.now() - lastTrue) / 1000);
  const text = connected ? "Live" : `Not live: no answer for ${seconds} s`;
  if (word.textContent !== text) word.textContent = text;
  word.classList.toggle("bad", !connected);
}

async function read() {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const answer = await fetch("/?only=live", { credentials: "same-origin", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401) { location.assign("/login"); return; }
    if (answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const focused = document.activeElement && live.contains(document.activeElement)
        ? document.activeElement.getAttribute("aria-labelledby") : null;
      live.replaceChildren(...fresh.body.childNodes);
      if (focused) live.querySelector(`[tabindex][aria-labelledby="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      lastTrue = Date.now();
    }
  } catch {
    connected = false;
  } finally {
    say();
    setTimeout(() => { reading = false; if (again) { again = false; read(); } }, PAUSE);
  }
}

function listen() {
  const source = new EventSource("/api/v1/feed");
  source.addEventListener("open", () => { connected = true; say(); read(); });
  source.addEventListener("change", read);
  source.addEventListener("error", () => {
    connected = false;
    say();
    if (source.readyState === EventSource.CLOSED) {  // refused, not cut off: the browser does not try again
      read();  // leads to the login when that is why
      setTimeout(listen, 5000);
    }
  });
}

listen();
setInterval(say, 5000);
