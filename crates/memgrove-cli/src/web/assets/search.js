// Hits as one types. The server renders them; what is typed meanwhile takes the turn of what was asked before.
import { tellTimes } from "./app.js";

const input = document.querySelector("#q");
const base = document.documentElement.dataset.base ?? "";
let asking = null;
let due = 0;

async function ask() {
  asking?.abort();
  asking = new AbortController();
  const query = input.value;
  const address = `${base}/search?${new URLSearchParams({ q: query })}`;
  try {
    const answer = await fetch(address, { signal: asking.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("#results, main");
    document.querySelector("#results")?.replaceChildren(...fresh.childNodes);
    tellTimes();
    history.replaceState(null, "", query ? `${base}/?${new URLSearchParams({ q: query })}` : `${base}/`);
  } catch (error) {
    if (error.name !== "AbortError") document.querySelector("#news").textContent = "The server does not answer.";
  }
}

input?.addEventListener("input", () => {
  clearTimeout(due);
  due = setTimeout(ask, 90);
});
input?.form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(due);
  ask();
});
