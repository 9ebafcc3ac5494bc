// A memory as someone might have it.
const day = (back) => new Date(Date.now() - back * 86400000).toISOString().slice(0, 10);

export async function fill(served) {
  const { call, place } = served;
  const file = (path, text, reason) => call("file_create", { path: `/memories/${path}`, text, reason });
  await file("preferences.md", "# Preferences\n\n- Tea, never coffee: **Darjeeling** in the morning.\n- Answers short, with the command first.\n- [x] Dark mode\n- [ ] Weekly review\n\n> Ask before you delete anything.\n\nSee [the plan](projects/silica.md) and [[projects/silica]].\n", "the user said so");
  await file("projects/silica.md", "# Silica\n\nA static site generator for notes.\n\n| milestone | when |\n|---|---:|\n| parser | done |\n| themes | December |\n\n```rust\nfn main() {\n    println!(\"silica\");\n}\n```\n\nBlocked by [[preferences]]. ![logo](logo.png) ![far](https://tracker.example/pixel.png)\n");
  await file("projects/harbor.md", "# Harbor\n\nDeploys go through `make ship`. The staging host is *not* behind the VPN.\n");
  // One green pixel.
  const pixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkSPX7DwADNgGfW4nRMAAAAABJRU5ErkJggg==", "base64");
  await fetch(`${served.base}/api/content?address=file:/memories/projects/logo.png`, { method: "PUT", body: pixel, headers: { authorization: `Bearer ${served.token}` } });
  await call("entity_batch", { entities: [
    { name: "Alice Moreau", type: "person", tags: ["team"], observations: ["Leads the Silica project", "Prefers tea over coffee", "In Lyon until March"], relations: [{ type: "works on", to: "Silica" }, { type: "reports to", to: "Bo Lindqvist" }] },
    { name: "Bo Lindqvist", type: "person", observations: ["Runs the platform team", "On holiday in week 51"], relations: [{ type: "owns", to: "Harbor" }] },
    { name: "Silica", type: "project", observations: ["A static site generator", "See [[projects/silica]]"], relations: [{ type: "uses", to: "Rust" }] },
    { name: "Harbor", type: "project", observations: ["The deployment service"], relations: [{ type: "hosts", to: "Silica" }] },
    { name: "Rust", type: "technology", observations: ["Edition 2024 in all repositories"] },
  ] });
  await call("record_add_many", { records: [
    { type: "core", content: "The user drinks tea, never coffee.", importance: "high", tags: ["preference"], category: "food" },
    { type: "learning", content: "Run migrations before the deploy, not after: on the 3rd the order broke staging.", importance: "medium", tags: ["deploy", "harbor"] },
    { type: "task", content: "Write the theme loader for Silica.", importance: "medium", tags: ["silica"], status: "in-progress" },
  ] });
  await call("file_replace", { path: "/memories/projects/harbor.md", old: "`make ship`", new: "`make ship`, never by hand", reason: "the user corrected this" });
  place("notes/memory.md", "# Memory\n\nEverything begins here.\n\n## Links\n\n- [[projects]]: what is being built\n- [[people]]: who builds it\n");
  place("notes/projects.md", "# Projects\n\n- [[projects/silica]]\n- [[projects/harbor]]\n");
  place("notes/projects/silica.md", "# Silica\n\nOwned by [[Alice Moreau]].\n");
  place("notes/projects/harbor.md", "# Harbor\n\nHosts [[projects/silica]].\n");
  place("notes/people.md", "# People\n\n[[Alice Moreau]] and [[Bo Lindqvist]].\n");
  place("notes/.metadata/decisions.jsonl", `${JSON.stringify({ time: `${day(1)}T10:00:00Z`, what: "split", path: "projects", agent: "rules", reason: "10,912 bytes are over the threshold; two headings name things of their own", strategy: "by_topic", parts: [{ path: "projects/silica", blocks: 7 }, { path: "projects/harbor", blocks: 5 }], refused: { agent: "anthropic", reason: "block 4 was in two parts" } })}\n`);
  await call("node_create", { type: "project", properties: { title: "Silica (node)", status: "active" }, content: "# Silica\n\nThe node of the project.\n" });
  await call("node_create", { type: "activity", properties: { title: "Review" } });
  await call("connection_create", { from: "mem_activity_001", type: "part_of", to: "mem_project_001" });
}
