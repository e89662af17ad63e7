// Two keys lead to a page: g g GPUs, g w workloads, g q queue, g c catalogue, g s storage, g k clusters, g a account; / searches.
let first = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const field = document.querySelector("[data-search], [data-log-search]");
    if (field) { event.preventDefault(); field.focus(); }
    return;
  }
  if (first && Date.now() - first < 1500) {
    first = 0;
    const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
  } else if (event.key === "g") {
    first = Date.now();
  }
});
