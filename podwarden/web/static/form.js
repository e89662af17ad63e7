// The preview beside a deploy form follows what is typed: the server answers with the same page, of which
// only the parts beside the fields are taken.
import { patch } from "./patch.js";

const form = document.querySelector("form[data-preview]");
const PAUSE = 250; // ms after the last key
let timer = 0, asked = 0;

async function ask() {
  const mine = ++asked;
  const body = new URLSearchParams(new FormData(form));
  body.set("step", "preview");
  try {
    const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401) return; // the button will lead to the login
    const html = await answer.text();
    if (mine !== asked) return; // a later question is on its way
    const fresh = patch(html);
    for (const field of form.querySelectorAll("[id^=f-]")) {
      const there = fresh.getElementById(field.id);
      if (there) field.toggleAttribute("aria-invalid", false), there.hasAttribute("aria-invalid") && field.setAttribute("aria-invalid", "true");
    }
  } catch { /* the page stays as it is; the button asks again */ }
}

form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE); });
form.querySelector("[data-no-script]")?.setAttribute("hidden", "");
