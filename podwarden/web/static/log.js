// A log that follows while it is scrolled to its end. A line is text, never HTML; what is drawn is bounded.
const box = document.querySelector("[data-log]");
const list = box.querySelector("ol");
const count = document.querySelector("[data-log-count]");
const state = document.querySelector("[data-log-state]");
const search = document.querySelector("[data-log-search]");
const MOST = 2000; // lines kept on the page
const MOST_OF_A_LINE = 2000; // characters
const ESCAPES = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])/g;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const LEVEL = [[/\b(ERROR|FATAL|CRITICAL|Traceback)\b/, "e"], [/\bWARN(ING)?\b/, "w"]];
let waiting = [], rest = "", seen = 0, scheduled = false;

const clean = (line) => {
  const text = line.slice(0, MOST_OF_A_LINE * 2).replace(ESCAPES, "").replace(CONTROL, "\ufffd");
  return text.length > MOST_OF_A_LINE ? `${text.slice(0, MOST_OF_A_LINE - 1)}…` : text;
};

function entry(line) {
  const item = document.createElement("li");
  const text = document.createElement("span");
  text.textContent = clean(line);
  text.className = LEVEL.find(([pattern]) => pattern.test(text.textContent))?.[1] ?? "";
  item.append(text);
  item.hidden = !matches(item);
  return item;
}

const matches = (item) => !search?.value || item.textContent.toLowerCase().includes(search.value.toLowerCase());

function draw() {
  scheduled = false;
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  list.querySelector(".none")?.remove();
  list.append(...waiting.slice(-MOST).map(entry));
  waiting = [];
  while (list.childElementCount > MOST) list.firstElementChild.remove();
  if (atEnd) box.scrollTop = box.scrollHeight;
  tell();
}

function tell() {
  const all = list.querySelectorAll("li:not(.none)"), hits = [...all].filter((item) => !item.hidden).length;
  count.textContent = search?.value ? `${hits} of the last ${all.length} lines` : `last ${all.length} of ${seen} lines`;
}

function take(text) {
  const lines = (rest + text).split("\n");
  rest = lines.pop().slice(0, 1 << 20);
  seen += lines.length;
  waiting.push(...lines.map((line) => line.slice(0, MOST_OF_A_LINE * 2)));
  if (waiting.length > MOST) waiting = waiting.slice(-MOST);
  if (waiting.length && !scheduled) { scheduled = true; requestAnimationFrame(draw); }
}

function say(text, style) {
  state.textContent = text;
  state.className = `live ${style}`;
}

async function follow() {
  const address = new URL(box.dataset.log, location.href);
  address.searchParams.set("follow", "true");
  address.searchParams.set("tail", "500");
  let ended = false;
  try {
    const answer = await fetch(address, { credentials: "same-origin" });
    if (!answer.ok) { say("no log", "still"); return; }
    list.replaceChildren();
    seen = 0; rest = "";
    say("following", "");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      take(value);
    }
    ended = true;
  } catch { /* cut off: asked again below */ }
  if (!list.childElementCount) list.append(Object.assign(document.createElement("li"), { className: "none", textContent: "Nothing was written yet." }));
  say(ended ? "at its end" : "silent, asks again", ended ? "still" : "stale");
  if (!ended) setTimeout(follow, 3000);
}

search?.addEventListener("input", () => {
  for (const item of list.children) item.hidden = !matches(item);
  tell();
});
search?.form.addEventListener("submit", (event) => event.preventDefault());
box.scrollTop = box.scrollHeight;
follow();
