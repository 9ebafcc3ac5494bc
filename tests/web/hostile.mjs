// Hundreds of texts that want to be run, in every place that takes text, shown on every page that shows it.
import { PAYLOADS } from "./payloads.mjs";
import { check } from "./watching.mjs";

const at = (path) => new URLSearchParams({ at: path });

export async function store(served) {
  check(new Set(PAYLOADS).size >= 300, `${new Set(PAYLOADS).size} different payloads`);
  const operations = PAYLOADS.map((text, index) => ({ type: "create", path: `/memories/hostile/${index}.md`, content: text }));
  await served.call("file_batch", { operations, reason: PAYLOADS[0] }, { "x-memgrove-client": encodeLatin(PAYLOADS[1]), "x-memgrove-session": encodeLatin(PAYLOADS[2]) });
  // No single word may be longer than a record, a tag or a name allows.
  const short = PAYLOADS.filter((text) => text.length < 400);
  await served.call("record_add_many", { records: short.map((text, index) => ({ type: ["core", "learning", "task"][index % 3], content: text, tags: [short[(index + 7) % short.length].slice(0, 40)], category: short[(index + 3) % short.length].slice(0, 40), ...(index % 3 === 2 ? { status: "in-progress" } : {}) })) }).catch(async () => {
    for (const [index, text] of short.entries()) {
      await served.call("record_add", { type: ["core", "learning"][index % 2], content: text, tags: ["hostile"], category: text.slice(0, 30) }).catch(() => {});
    }
  });
  await served.call("entity_batch", { entities: short.map((text, index) => ({ name: text, type: short[(index % 5) * 11], observations: [text, PAYLOADS[index]], tags: [text.slice(0, 60)], relations: [{ type: text, to: short[(index + 1) % short.length] }] })), reason: PAYLOADS[3] });
  // A name that the API refuses can still come by an editor.
  let names = 0, refused = 0;
  for (const [index, text] of PAYLOADS.entries()) {
    const name = `${text.replaceAll(/[/\u0000-\u001f]/g, "").slice(0, 80)} ${index}.md`;
    if (index % 4 === 0) await served.call("file_create", { path: `/memories/hostile-names/${name}`, text }).then(() => { names++; }, () => { refused++; });
    else served.place(`files/hostile-names/${name}`, text), names++;
  }
  for (const text of short.slice(0, 60)) {
    await served.call("file_insert", { path: "/memories/hostile/0.md", line: 1, text, reason: text });
  }
  served.place("notes/.metadata/decisions.jsonl", PAYLOADS.map((text) => `${JSON.stringify({ time: text, what: text, path: text, agent: text, reason: text, strategy: text, parts: [{ path: text, blocks: text }], refused: { agent: text, reason: text }, spent: { [text]: text } })}\n`).join(""));
  served.place("notes/hostile.md", PAYLOADS.join("\n\n"));
  served.place("graph/_content/nodes/hostile.meta.json", JSON.stringify({ type: PAYLOADS[4], properties: { title: PAYLOADS[5] } }));
  const graph = { nodes: [], connections: [] };
  // A type may have no control characters.
  for (const [index, text] of short.filter((text) => !/[\u0000-\u001f]/.test(text)).slice(0, 60).entries()) {
    graph.nodes.push({ id: `bad_${index}`, type: text, properties: { title: text, [text]: [text, { [text]: text }] }, content: text });
    if (index > 0) graph.connections.push({ id: `tie_${index}`, from: `bad_${index}`, type: text, to: `bad_${index - 1}`, content: text });
  }
  await served.call("graph_import", { graph });
  served.place("records/index.json", PAYLOADS[6]);
  check(names >= 250 && refused > 0, `${names} payloads are names, ${refused} are refused`);
  const { total } = await served.call("record_list", { limit: 1 });
  check(total >= 300, `${total} records hold payloads`);
  return `${PAYLOADS.length} payloads; ${names} of them as names, ${total} records`;
}

// A header holds bytes, not any text.
const encodeLatin = (text) => text.replace(/[^\x20-\x7e]/g, "?");

async function visits(rooms, paths, isUntouched) {
  const queue = [...paths];
  await Promise.all(rooms.map(async (page) => {
    for (let path = queue.shift(); path; path = queue.shift()) {
      await page.goto(path, { waitUntil: "load" });
      await isUntouched(page);
    }
  }));
  return paths.length;
}

export async function show({ served, room, state, watch, look, isUntouched }) {
  const { context, page } = await room(state);
  const rooms = [page, watch(await context.newPage()), watch(await context.newPage()), watch(await context.newPage())];
  const base = served.base;
  const { records } = await served.call("record_list", { budget: 1000000, limit: 400 });
  const data = await page.request.get(`${base}/graph/data`).then((answer) => answer.json());
  const entities = data.things.filter((thing) => thing.shape === "entities").map((thing) => thing.at);
  const names = data.things.filter((thing) => thing.at.startsWith("files/hostile-names/")).map((thing) => thing.at);
  const last = await served.call("history", { limit: 3 });
  const paths = [
    ...PAYLOADS.map((_, index) => `${base}/read?${at(`files/hostile/${index}.md`)}`),
    ...entities.slice(0, 12).map((place) => `${base}/read?${at(place)}`),
    ...data.things.filter((thing) => thing.shape === "graph").slice(0, 40).map((thing) => `${base}/read?${at(thing.at)}`),
    ...records.slice(0, 12).map(({ id }) => `${base}/record?${new URLSearchParams({ id })}`),
    ...names.slice(0, 12).flatMap((place) => [`${base}/read?${at(place)}`, `${base}/edit?${at(place)}`]),
    ...names.slice(0, 5).map((place) => `${base}/history?${at(place)}`),
    ...PAYLOADS.slice(0, 12).map((q) => `${base}/?${new URLSearchParams({ q })}`),
    `${base}/edit?${at("files/hostile/7.md")}`, `${base}/diff?${at("files/hostile/0.md")}&change=${last.changes[0].change}`,
    `${base}/diff?${at("files/hostile/0.md")}&change=${last.changes[0].change}&now=yes`,
    `${base}/browse/entities?${new URLSearchParams({ words: PAYLOADS[0], kind: PAYLOADS[1] })}`, `${base}/browse/records?${new URLSearchParams({ text: PAYLOADS[0] })}`,
  ];
  const visited = await visits(rooms, paths, isUntouched);
  const whole = { "": "/", search: "/?q=script", browse: "/browse", records: "/browse/records", entities: "/browse/entities", files: "/browse/files", folder: `/browse/files?under=files/hostile-names`,
    notes: "/browse/notes", nodes: "/browse/graph", note: `/read?${at("notes/hostile.md")}`, history: `/history?${at("files/hostile/0.md")}`, timeline: "/timeline",
    decisions: "/decisions", statistics: "/statistics", doctor: "/doctor", conflicts: "/conflicts", graph: "/graph" };
  for (const [name, path] of Object.entries(whole)) {
    await page.goto(base + path);
    if (name === "graph") await page.locator("#graph[data-state]").waitFor();
    await page.waitForTimeout(100);
    await look(page, `hostile-${name || "welcome"}`);
  }
  // What is missing, and what is wrong, is told with the words that were sent.
  for (const text of PAYLOADS.slice(0, 4)) {
    page.expectsErrors = true;
    for (const path of [`/read?${at(text)}`, `/read?${new URLSearchParams({ link: text, from: "notes/x.md" })}`, `/browse/${encodeURIComponent(text.replaceAll("/", ""))}`, `/record?${new URLSearchParams({ id: text })}`]) {
      await page.goto(base + path);
      await isUntouched(page);
    }
    page.expectsErrors = false;
  }
  await context.close();
  return `${visited + Object.keys(whole).length + 16} pages`;
}
