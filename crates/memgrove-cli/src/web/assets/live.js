// What changes in the store appears on the page, as the page wishes: `data-live` on its content.
// Only a page that is seen listens, because browsers allow few connections.
export function listen(shown) {
  const main = document.querySelector("main[data-live]");
  if (!main || main.dataset.live === "still") return;
  const base = document.documentElement.dataset.base ?? "";
  let source = null;
  let last = null;
  let due = 0;
  // What is told and not shown yet.
  let waiting = 0;

  const concerns = (change) => {
    if (["anew", "tell"].includes(main.dataset.live) || !change) return true;
    return (change.edits ?? []).some((edit) => [edit.at, edit.to, edit.memory].includes(main.dataset.of));
  };

  const news = (...told) => document.querySelector("#news")?.replaceChildren(...told);

  // What is new stays away until it is asked for.
  function offer(text) {
    const button = document.createElement("button");
    button.textContent = "Show";
    button.addEventListener("click", () => {
      news();
      if (main.dataset.live === "tell") return location.reload();
      main.focus({ preventScroll: true });
      refresh();
    });
    news(`${text} `, button);
  }

  // Whoever points at a list of changes or at a form, or has come to it by the keys, is about to press a button there:
  // it does not move away under the pointer.
  const isAimed = () => main.querySelector(":is(ol.changes, form):is(:hover, :focus-within)") !== null;
  const isEditing = () => main.dataset.live === "warn" || main.querySelector("details[open] > form.edit") !== null;

  // Whether a field says something that the page did not say when it came.
  const isTyped = () => [...main.querySelectorAll("input, textarea, select")].some((field) =>
    field.matches("select") ? !isFirst(field) : field.value !== field.defaultValue);
  const isFirst = (select) => {
    const chosen = [...select.options].findIndex((option) => option.defaultSelected);
    return select.selectedIndex === Math.max(0, chosen);
  };

  async function anew() {
    // Whoever is writing something is not disturbed.
    if (main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) return;
    if (!isTyped() && !isAimed()) await refresh(isAimed);
  }

  // Shows the page as it is now, unless it may not be any more when that has come.
  async function refresh(isHeld = () => false) {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main");
    if (!fresh || document.querySelector("#q")?.value || isTyped() || isHeld()) return;
    const items = () => [...main.querySelectorAll("[data-item]")];
    const name = (item) => item?.dataset.item || item?.querySelector("a")?.getAttribute("href");
    const here = name(items().find((item) => item.contains(document.activeElement)));
    main.replaceChildren(...fresh.childNodes);
    waiting = 0;
    if (here) items().find((item) => name(item) === here)?.querySelector("a, button")?.focus();
    shown(main);
  }

  function heard(event) {
    const change = event.type === "change" ? JSON.parse(event.data) : null;
    if (event.lastEventId) last = event.lastEventId;
    if (!concerns(change)) return;
    if (isEditing()) {
      news(`${change?.by ?? "Someone"} has changed this meanwhile. Saving will show both versions.`);
      return;
    }
    waiting += 1;
    const told = change ? `${change.verb.replaceAll("_", " ")} by ${change.by}` : "Something changed";
    if (main.dataset.live === "tell" || document.querySelector("#q")?.value) return offer("Something changed.");
    if (isAimed()) return offer(waiting === 1 ? `1 new change: ${told}.` : `${waiting} new changes.`);
    news(told);
    clearTimeout(due);
    due = setTimeout(anew, 150);
  }

  function open() {
    if (source || document.hidden) return;
    // What happened while nobody looked is told first.
    source = new EventSource(`${base}/api/events${last ? `?since=${encodeURIComponent(last)}` : ""}`);
    source.addEventListener("change", heard);
    source.addEventListener("missed", heard);
    source.addEventListener("listening", (event) => {
      last = event.lastEventId || last;
      main.dataset.listening = "yes";
    });
  }

  function close() {
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
    // What was edited by hand is not in the history.
    if (main.dataset.live !== "tell" && !isEditing()) anew();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}
