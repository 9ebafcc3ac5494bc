// Anthropic's official TypeScript SDK against `memgrove serve`. usage: node memory_stores.mjs CLIENTS ADDRESS TOKEN
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";

const [clients, baseURL, apiKey] = process.argv.slice(2);
const { default: Anthropic } = await import(createRequire(`${clients}/package.json`).resolve("@anthropic-ai/sdk"));
const client = new Anthropic({ apiKey, baseURL, maxRetries: 0 });
const stores = client.beta.memoryStores;
const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const refused = (status, type, call) =>
  assert.rejects(call, (error) => error.status === status && error.error?.error?.type === type);

const store = await stores.create({ name: "From TypeScript", metadata: { a: "b" } });
assert.deepEqual(await stores.retrieve(store.id), store);
assert.equal((await stores.update(store.id, { description: "changed" })).description, "changed");

const of = { memory_store_id: store.id };
const made = await stores.memories.create(store.id, { path: "/a.md", content: "one\n", view: "full" });
assert.equal(made.content, "one\n");
assert.equal(made.content_sha256, sha256("one\n"));
const precondition = { type: "content_sha256", content_sha256: made.content_sha256 };
const changed = await stores.memories.update(made.id, { ...of, content: "two\n", path: "/b/c.md", precondition });
assert.equal(changed.path, "/b/c.md");
await refused(409, "memory_precondition_failed_error", () => stores.memories.update(made.id, { ...of, content: "x", precondition }));
await refused(409, "memory_path_conflict_error", () => stores.memories.create(store.id, { path: "/b/c.md", content: "" }));
assert.equal((await stores.memories.retrieve(made.id, of)).content, "two\n");
for (let number = 0; number < 5; number++) await stores.memories.create(store.id, { path: `/n/${number}.md`, content: "" });

const listed = [];
for await (const item of stores.memories.list(store.id, { limit: 2, depth: 1 })) listed.push(`${item.type} ${item.path}`);
assert.deepEqual(listed, ["memory_prefix /b/", "memory_prefix /n/"]);
const versions = [];
for await (const version of stores.memoryVersions.list(store.id, { memory_id: made.id, limit: 1 })) versions.push(version);
assert.deepEqual(versions.map((version) => version.operation), ["modified", "created"]);
assert.equal((await stores.memoryVersions.retrieve(versions[1].id, of)).content, "one\n");
const redacted = await stores.memoryVersions.redact(versions[1].id, of);
assert.equal(redacted.content, null);
assert.ok(redacted.redacted_at);
assert.equal((await stores.memories.delete(made.id, of)).type, "memory_deleted");
await refused(404, "not_found_error", () => stores.memories.retrieve(made.id, of));
assert.ok((await stores.archive(store.id)).archived_at);
assert.equal((await stores.delete(store.id)).type, "memory_store_deleted");
console.log("memory stores, TypeScript: all holds");
