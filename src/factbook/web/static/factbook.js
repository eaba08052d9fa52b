// Conveniences; every page does its work without them.

const find = (selector, root = document) => [...root.querySelectorAll(selector)];

// Copies the text of the code beside a button.
function copying(root) {
  if (!navigator.clipboard) return;
  for (const button of find("[data-copy]", root)) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = label), 1500);
    });
  }
}

// Puts one element in the place of another; the link or field that has the focus keeps it.
function replace(shown, made) {
  const at = shown.contains(document.activeElement) ? document.activeElement : null;
  const same = (each) =>
    each.tagName === at.tagName &&
    ["href", "id", "name"].every((name) => each.getAttribute(name) === at.getAttribute(name));
  shown.replaceWith(made);
  if (!at) return;
  const field = find("[data-focus]")[0];
  (find("a, button, input, select, textarea, summary", made).find(same) ?? field)?.focus();
}

// The page at an address, of which the elements with these ids take the place of those shown.
async function refresh(address, ids, signal) {
  const answer = await fetch(address, { signal, headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return null;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) {
    const shown = document.getElementById(id);
    const made = page.getElementById(id);
    if (shown && made && !shown.isEqualNode(made)) {
      replace(shown, made);
      copying(made);
    }
  }
  return page;
}

// A form that is answered while it is filled in: data-search names the element with the results.
function searching() {
  for (const form of find("form[data-search]")) {
    let waiting = 0;
    let asking = null;
    const ask = () => {
      const query = new URLSearchParams(
        [...new FormData(form)].filter(([, value]) => value !== ""),
      );
      const address = `${form.getAttribute("action")}?${query}`;
      asking?.abort();
      asking = new AbortController();
      refresh(address, form.dataset.search.split(" "), asking.signal)
        .then((page) => page && history.replaceState(null, "", address))
        .catch((error) => error.name === "AbortError" || form.submit());
    };
    form.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(ask, 140);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(waiting);
      ask();
    });
    for (const button of find("[data-without-script]", form)) button.hidden = true;
  }
}

// An element that shows work under way: it is looked at again until it says no more that it is.
function following() {
  const next = () => {
    const shown = document.querySelector("[data-follow]");
    if (!shown) return;
    setTimeout(async () => {
      const ids = find("[data-follow]").map((each) => each.id);
      await refresh(location.href, ids).catch(() => null);
      next();
    }, Number(shown.dataset.follow));
  };
  next();
}

// A press outside closes what asks once more; so does Escape, which leads back to its button.
function closing() {
  const open = () => find("details.confirm[open]");
  document.addEventListener("click", (event) => {
    for (const each of open()) if (!each.contains(event.target)) each.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const each of open()) {
      if (each.contains(document.activeElement)) each.querySelector("summary").focus();
      each.open = false;
    }
  });
}

// The search for anything has the focus after "/" or Ctrl+K, wherever nothing is being written.
function seeking() {
  const writes = (element) => element.closest("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    const chord = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!chord && !(slash && !writes(event.target))) return;
    const fields = [...find("#search-text"), ...find("[data-search-anywhere]")];
    const field = fields.find((each) => each.checkVisibility());
    event.preventDefault();
    if (field) field.select();
    else if (find("[data-search-anywhere]").length) location.assign("/search");
  });
}

// Arrows lead from the field of the search for anything to what it finds, and back.
function stepping() {
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = find("#search-text, #search-results a");
    const at = stops.indexOf(document.activeElement);
    if (!step || at < 0 || !stops[at + step]) return;
    event.preventDefault();
    stops[at + step].focus();
  });
}

copying(document);
searching();
following();
closing();
seeking();
stepping();
// What is written into a field already goes on at its end.
const first = document.querySelector("[data-focus]");
first?.focus();
if (first?.type === "search") first.setSelectionRange(first.value.length, first.value.length);
