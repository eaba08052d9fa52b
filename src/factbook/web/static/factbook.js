// Conveniences; every page does its work without them.

const find = (selector, root = document) => [...root.querySelectorAll(selector)];

const writes = (element) => element.closest("input, textarea, select, [contenteditable]");

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

// Puts one element in the place of another; the link or field that has the focus keeps it, and
// opened details and sideways scrolling stay.
function replace(shown, made) {
  const focus = shown.contains(document.activeElement) ? document.activeElement : null;
  const mark = (each) =>
    ["href", "id", "name"].map((name) => each.getAttribute(name)).find(Boolean) ?? each.textContent;
  const same = (one) => (other) => one.tagName === other.tagName && mark(one) === mark(other);
  const kept = "details, .table-scroll, pre";
  const pairs = find(kept, shown).map((old, index) => [old, find(kept, made)[index]]);
  const alike = pairs.filter(([old, anew]) => anew && old.textContent === anew.textContent);
  const lefts = pairs.map(([old]) => old.scrollLeft);
  shown.replaceWith(made);
  pairs.forEach(([, anew], index) => anew && (anew.scrollLeft = lefts[index]));
  for (const [old, anew] of alike) if (old.open !== undefined) anew.open = old.open;
  if (!focus) return;
  const controls = find("a, button, input, select, textarea, summary, [tabindex]", made);
  (controls.find(same(focus)) ?? find("[data-focus]")[0])?.focus({ preventScroll: true });
}

// The page at an address, of which the elements with these ids take the place of those shown.
async function refresh(address, ids, signal) {
  const answer = await fetch(address, { signal, headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return { page: null, status: answer.status };
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) {
    const shown = document.getElementById(id);
    const made = page.getElementById(id);
    if (shown && made && !shown.isEqualNode(made)) {
      replace(shown, made);
      copying(made);
    }
  }
  return { page, status: answer.status };
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
        .then(({ page }) => page && history.replaceState(null, "", address))
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

// Elements that show what changes: data-live names its topics, and a stream says when to look again.
// Where data-follow stands, something is under way, which is looked at without a stream, too.
function living() {
  const SHORTEST = 1_000;
  const LONGEST = 60_000;
  const UNUSED = 5_000;
  // Where the stream is heard, a look by the clock is for what it does not tell.
  const HEARD = 5;
  // Of the time in which a page is shown, its making takes no more than a part. One slow look is no
  // sign of a slow page: the quicker of the last two counts.
  const SHARE = 40;
  let stream = null;
  let watched = "";
  let heard = false;
  let failures = 0;
  let timer = 0;
  let due = Infinity;
  let earliest = 0;
  let took = 0;
  let reopens = 0;
  let asking = false;
  let behind = false;
  let ended = false;

  const live = () => find("[data-live], [data-follow]");
  const named = (each) => each.dataset.live.split(" ").filter(Boolean).map(decodeURIComponent);
  const topics = () => [...new Set(find("[data-live]").flatMap(named))].sort();
  // What somebody writes in, or has opened to decide on, stays until they have done so.
  const isUsed = (element) =>
    element.querySelector("details.confirm[open]") ||
    (element.contains(document.activeElement) && writes(document.activeElement)) ||
    find("textarea, input[type=text]", element).some((each) => each.value !== each.defaultValue);

  function plan(milliseconds) {
    const at = Math.max(performance.now() + milliseconds, earliest);
    if (ended || document.hidden || at >= due) return;
    clearTimeout(timer);
    due = at;
    timer = setTimeout(look, at - performance.now());
  }

  function backOff() {
    failures += 1;
    const pause = Math.min(LONGEST, SHORTEST * 2 ** failures) * (0.5 + Math.random());
    reopens = performance.now() + pause;
    plan(pause);
  }

  async function look() {
    due = Infinity;
    // What changes while the page is on its way may not be on it.
    if (asking) behind = true;
    if (asking || document.hidden) return;
    const ids = live().filter((each) => !isUsed(each)).map((each) => each.id);
    if (!ids.length) return plan(UNUSED);
    asking = true;
    behind = false;
    const began = performance.now();
    const patience = new AbortController();
    const end = setTimeout(() => patience.abort(), LONGEST);
    const answer = refresh(location.href, ids, patience.signal);
    const { page, status } = await answer.catch(() => ({ status: 503 }));
    clearTimeout(end);
    asking = false;
    const before = took;
    took = performance.now() - began;
    const rest = SHARE * Math.min(took, before);
    earliest = performance.now() + Math.min(LONGEST, Math.max(SHORTEST, rest));
    if (page) {
      document.querySelector("main").dataset.shown = page.querySelector("main").dataset.shown;
      failures = heard ? 0 : failures;
      if (ids.length < live().length) plan(UNUSED);
      if (behind) plan(0);
      go();
    } else if (status < 500 && status !== 429) {
      // Signed out, or what the page is about has gone: asking again would not help.
      ended = true;
      close();
    } else backOff();
  }

  function close() {
    stream?.close();
    stream = null;
    heard = false;
  }

  function open(names) {
    const { shown } = document.querySelector("main").dataset;
    const query = new URLSearchParams([["since", shown], ...names.map((name) => ["topic", name])]);
    watched = names.join(" ");
    stream = new EventSource(`/live?${query}`);
    stream.addEventListener("opened", () => {
      heard = true;
      failures = 0;
    });
    stream.addEventListener("changed", () => plan(0));
    stream.addEventListener("error", () => {
      close();
      backOff();
    });
  }

  function go() {
    if (document.hidden) return;
    const names = topics();
    if (stream && names.join(" ") !== watched) close();
    const pause = reopens - performance.now();
    if (names.length && !stream) pause > 0 ? plan(pause) : open(names);
    const slower = (each) => (heard && each.dataset.live ? HEARD : 1);
    const every = find("[data-follow]").map((each) => slower(each) * Number(each.dataset.follow));
    if (every.length) plan(Math.min(...every));
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    due = Infinity;
    if (document.hidden) close();
    else if (live().length) {
      reopens = 0;
      plan(0);
    }
  });
  go();
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
living();
closing();
seeking();
stepping();
// What is written into a field already goes on at its end.
const first = document.querySelector("[data-focus]");
first?.focus();
if (first?.type === "search") first.setSelectionRange(first.value.length, first.value.length);
