// What every page can do: keys, light and dark, times in the reader's zone, live updates.
import { listen } from "./live.js";

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("memgrove-theme", root.dataset.theme); } catch { /* It holds for this page. */ }
  document.dispatchEvent(new Event("theme"));
}

function step(by) {
  const items = all("[data-item]").filter((item) => item.offsetParent !== null);
  if (items.length === 0) return;
  const here = items.findIndex((item) => item.contains(document.activeElement));
  const next = items[Math.max(0, Math.min(items.length - 1, here < 0 ? (by > 0 ? 0 : items.length - 1) : here + by))];
  one("a, button", next)?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function press(key) {
  const target = one(`[data-key="${key}"]`);
  target?.click();
  return Boolean(target);
}

// One level up: to the last place of the way here, to the page's tab, to the search.
function leave() {
  const ways = [all(".crumbs a").at(-1), one("header nav [aria-current=page]"), one(".brand")];
  ways.find((way) => way && way.href !== location.href)?.click();
}

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const find = one("#q");
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "ArrowDown" && event.target === find) { step(1); event.preventDefault(); }
    return;
  }
  const acts = {
    "/": () => { find?.focus(); find?.select(); },
    j: () => step(1),
    k: () => step(-1),
    e: () => press("e") && one("details[open] > form.edit textarea")?.focus(),
    h: () => press("h"),
    t: toggleTheme,
    "?": () => one("#help")?.showModal(),
    Escape: () => one("#help")?.open || staysTyped() || press("Escape") || leave(),
  };
  const act = acts[event.key];
  if (!act) return;
  if (event.key !== "Escape") event.preventDefault();
  act();
}

// Times as people say them; the exact one is a touch away.
export function tellTimes(within = document) {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  for (const time of all("time[datetime]", within)) {
    const moment = Date.parse(time.dateTime);
    if (Number.isNaN(moment) || time.dateTime.length <= 10) continue;
    const seconds = (moment - Date.now()) / 1000;
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["minute", 60];
    const isLongAgo = Math.abs(seconds) > 6 * 86400;
    time.textContent = isLongAgo ? new Date(moment).toLocaleDateString(undefined, { dateStyle: "medium" })
      : Math.abs(seconds) < 60 ? "just now" : ago.format(Math.round(seconds / size), unit);
    time.title = new Date(moment).toLocaleString();
  }
}

// The days of changes are those of the reader's zone, not of the server's.
function tellDays(within) {
  const days = all("h3.day", within);
  const items = days.flatMap((day) => [...day.nextElementSibling.children]);
  const dayOf = (item) => {
    const moment = new Date(one("time[datetime]", item).dateTime);
    return [moment.getFullYear(), moment.getMonth() + 1, moment.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
  };
  if (items.every((item) => dayOf(item) === item.parentElement.previousElementSibling.textContent)) return;
  let last = null;
  for (const item of items) {
    if (last?.day !== dayOf(item)) {
      const heading = Object.assign(document.createElement("h3"), { className: "day", textContent: dayOf(item) });
      last = { day: dayOf(item), list: Object.assign(document.createElement("ol"), { className: "changes" }) };
      days[0].before(heading, last.list);
    }
    last.list.append(item);
  }
  for (const day of days) { day.nextElementSibling.remove(); day.remove(); }
}

// A form that is edited, or that came with what was typed and is not saved, is not left by accident.
const unsaved = () => one("form.edit[data-dirty]");

// A browser does not ask whoever leaves by the Escape key alone.
function staysTyped() {
  const form = unsaved();
  if (form) one("#news").textContent = "What you typed is not saved: save it, or leave it by its buttons.";
  return Boolean(form);
}

function guardEdits() {
  // A page that shows itself anew has another form then.
  const within = (act) => (event) => {
    const form = event.target.closest?.("form.edit");
    if (form) act(form, event);
  };
  document.addEventListener("input", within((form) => { form.dataset.dirty = ""; }));
  document.addEventListener("submit", within((form) => { delete form.dataset.dirty; }));
  document.addEventListener("keydown", within((form, event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(one("button.main", form));
  }));
  addEventListener("beforeunload", (event) => { if (unsaved()) event.preventDefault(); });
}

// What was just done is told once, not again whenever the page shows itself anew.
function tellOnce() {
  const here = new URL(location);
  const told = ["done", "left", "changed"].filter((name) => here.searchParams.has(name));
  told.forEach((name) => here.searchParams.delete(name));
  if (told.length > 0) history.replaceState(null, "", here);
}

// On a narrow screen the tabs are moved until this page's is seen, and fade where there are more. So are the spaces.
function showTab(tabs) {
  const fade = () => {
    const hidden = tabs.scrollWidth - tabs.clientWidth;
    tabs.classList.toggle("more-left", tabs.scrollLeft > 1);
    tabs.classList.toggle("more-right", tabs.scrollLeft < hidden - 1);
  };
  one("[aria-current]", tabs)?.scrollIntoView({ inline: "center", block: "nearest" });
  tabs.addEventListener("scroll", fade, { passive: true });
  addEventListener("resize", fade);
  fade();
}

document.addEventListener("keydown", onKey);
one("#theme")?.addEventListener("click", toggleTheme);
one("#keys")?.addEventListener("click", () => one("#help")?.showModal());
tellDays(document);
tellTimes();
setInterval(tellTimes, 60000);
guardEdits();
tellOnce();
all("header nav").forEach(showTab);
listen((main) => { tellDays(main); tellTimes(main); });
