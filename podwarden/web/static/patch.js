// Puts fresh HTML of the server in place of what changed, and leaves alone what is read, typed or focused.
import { localize } from "./times.js";

const reading = (old) => {
  const chosen = document.getSelection();
  return chosen && !chosen.isCollapsed && old.contains(chosen.anchorNode);
};
const typing = (old) => {
  const at = document.activeElement;
  return at && old.contains(at) && /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName);
};

/** Replaces `old`'s children by those of `fresh`; keeps open folds, focus and scroll places. */
export function swap(old, fresh) {
  const html = fresh.innerHTML;
  if (html === old.freshHtml) return;
  if (reading(old) || typing(old)) return;
  const open = [...old.querySelectorAll("details[open][id]")].map((each) => each.id);
  const at = document.activeElement;
  const place = at && old.contains(at) ? name(at) : "";
  const scrolled = [...old.querySelectorAll("[tabindex][aria-label]")].map((each) => [each.getAttribute("aria-label"), each.scrollLeft, each.scrollTop]);
  old.replaceChildren(...fresh.childNodes);
  old.freshHtml = html;
  open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  localize(old);
  for (const [label, left, top] of scrolled) {
    const same = old.querySelector(`[tabindex][aria-label="${CSS.escape(label)}"]`);
    if (same) same.scrollTo(left, top);
  }
  if (place) old.querySelector(place)?.focus({ preventScroll: true });
}

function name(element) {
  for (const key of ["id", "href", "aria-label"]) {
    const value = element.getAttribute(key);
    if (value) return `[${key}="${CSS.escape(value)}"]`;
  }
  return element.closest("details[id]") ? `#${CSS.escape(element.closest("details[id]").id)} > summary` : "";
}

/** Every part of `html` that has the id of a part on this page takes its place. */
export function patch(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const old of document.querySelectorAll("[data-part][id]")) {
    const part = fresh.getElementById(old.id);
    if (part) swap(old, part);
  }
  return fresh;
}
