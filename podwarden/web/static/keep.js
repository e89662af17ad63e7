// What was typed outlives an expired login and a restart of the server: kept in this tab, never passwords.
const KEEP = 3600e3; // ms
const form = document.querySelector("form[data-keep]");
const key = `typed ${location.pathname}`;
const kept = (field) => field.name && !["password", "hidden", "file", "submit"].includes(field.type);

if (form) {
  const stored = JSON.parse(sessionStorage.getItem(key) ?? "null");
  sessionStorage.removeItem(key);
  if (stored && Date.now() - stored.at < KEEP) {
    for (const field of form.elements) {
      if (!kept(field) || !(field.name in stored.fields)) continue;
      if (field.type === "checkbox") field.checked = stored.fields[field.name] === field.value;
      else field.value = stored.fields[field.name];
    }
    form.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const save = () => {
    const fields = {};
    for (const field of form.elements) {
      if (kept(field)) fields[field.name] = field.type === "checkbox" && !field.checked ? "" : field.value;
    }
    sessionStorage.setItem(key, JSON.stringify({ at: Date.now(), fields }));
  };
  form.addEventListener("input", save);
  form.addEventListener("submit", save);
} else if (!document.querySelector("form[action='/login']")) {
  sessionStorage.clear();
}
