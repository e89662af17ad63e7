// Times in the viewer's zone; ages go on counting.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const short = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** `42 s`, `2 h 5 min`, as the server writes it. */
export function span(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

function word(at, how) {
  if (how === "age") return span((Date.now() - at) / 1000);
  const today = at.toDateString() === new Date().toDateString();
  if (how === "day") return today ? short.format(at) : `${day.format(at)} ${short.format(at)}`;
  if (how === "short") return today ? short.format(at) : `${day.format(at)} ${short.format(at)}`;
  return today ? clock.format(at) : `${day.format(at)} ${short.format(at)}`;
}

export function localize(root) {
  for (const time of root.querySelectorAll("time[data-show]")) {
    const at = new Date(time.dateTime);
    const text = word(at, time.dataset.show);
    if (time.textContent !== text) time.textContent = text;
    time.title = whole.format(at);
  }
  for (const mark of root.querySelectorAll("text[data-at]")) mark.textContent = short.format(new Date(mark.dataset.at));
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}
