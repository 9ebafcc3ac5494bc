// What changes in the store appears on the page, as the page wishes: `data-live` on its content.
// Only a page that is seen listens, because browsers allow few connections.
export function listen(shown) {
  const main = document.querySelector("main[data-live]");
  if (!main || main.dataset.live === "still") return;
  const base = document.documentElement.dataset.base ?? "";
  let source = null;
  let last = null;
  let due = 0;

  const concerns = (change) => {
    if (main.dataset.live === "anew" || !change) return true;
    return (change.edits ?? []).some((edit) => edit.at === main.dataset.of || edit.to === main.dataset.of);
  };

  const news = (text) => {
    const place = document.querySelector("#news");
    if (place) place.textContent = text;
  };

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
    if (isTyped()) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main");
    if (!fresh || document.querySelector("#q")?.value || isTyped()) return;
    const items = [...main.querySelectorAll("[data-item]")];
    const here = items.findIndex((item) => item.contains(document.activeElement));
    main.replaceChildren(...fresh.childNodes);
    if (here >= 0) main.querySelectorAll("[data-item]")[here]?.querySelector("a, button")?.focus();
    shown(main);
  }

  function heard(event) {
    const change = event.type === "change" ? JSON.parse(event.data) : null;
    if (event.lastEventId) last = event.lastEventId;
    if (!concerns(change)) return;
    if (main.dataset.live === "warn") {
      news(`${change?.by ?? "Someone"} has changed this meanwhile. Saving will show both versions.`);
      return;
    }
    if (change) news(`${change.verb.replaceAll("_", " ")} by ${change.by}`);
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
    if (main.dataset.live !== "warn") anew();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}
