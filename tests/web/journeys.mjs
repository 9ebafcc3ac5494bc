// What a person does with the pages, step by step.
import { check } from "./watching.mjs";

const at = (path) => new URLSearchParams({ at: path });

// Typing finds, marks, dates and counts; the keys lead on.
export async function search({ page, served, look }) {
  await page.goto(`${served.base}/`);
  await page.locator(".cards").waitFor();
  await look(page, "welcome");
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.keyboard.type("tea");
  await page.locator(".hit mark").first().waitFor();
  check(await page.locator(".hit").count() >= 3, "tea is found in a file, an entity and a record");
  check(await page.locator(".hit time").count() >= 3, "hits are dated");
  check(/≈ \d+ tokens/.test(await page.locator(".hit").first().innerText()), "a hit says what it costs");
  check(page.url().endsWith("?q=tea"), "the address names the search");
  await look(page, "search");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const href = await page.evaluate(() => document.activeElement.getAttribute("href"));
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === "/read" || url.pathname === "/record");
  check(href !== null && (await page.locator("h1").count()) === 1, "Enter opens the hit");
}

export async function read({ page, served, look }) {
  await page.goto(`${served.base}/read?${at("files/preferences.md")}`);
  check(await page.locator("article strong", { hasText: "Darjeeling" }).count() === 1, "markdown is rendered");
  await look(page, "read");
  await page.locator("article a", { hasText: "the plan" }).click();
  await page.locator("h1", { hasText: "silica" }).waitFor();
  check(await page.locator(".blocked").count() === 1, "an image of another site is not loaded");
  await look(page, "read-rich");
  await page.goto(`${served.base}/read?address=entity:person/Alice%20Moreau`);
  check(await page.locator(".relations a", { hasText: "Silica" }).count() === 1, "relations are links");
  await look(page, "entity");
  await page.goto(`${served.base}/browse/graph`);
  await page.locator("tbody a", { hasText: "Silica (node)" }).click();
  await page.locator("h1", { hasText: "Silica (node)" }).waitFor();
  check(await page.locator(".properties dd", { hasText: "Silica (node)" }).count() === 1, "the properties of a node are shown");
  await look(page, "node");
  await page.locator(".relations a", { hasText: "Review" }).click();
  await page.locator("h1", { hasText: "Review" }).waitFor();
  check((await page.locator(".relations").innerText()).includes("part_of Silica (node)"), "connections lead both ways");
  await page.goto(`${served.base}/read?${at("notes/memory.md")}`);
  await page.locator("article a", { hasText: "projects" }).click();
  await page.locator("h1", { hasText: "projects" }).waitFor();
  await look(page, "note");
}

export async function browse({ page, served, look }) {
  for (const shape of ["notes", "records", "entities", "graph", "files"]) {
    await page.goto(`${served.base}/browse/${shape}`);
    check(await page.locator("[data-item] a").count() > 0, `${shape} are listed`);
    await look(page, `browse-${shape}`);
  }
  await page.goto(`${served.base}/browse/records?type=task`);
  check(await page.locator("tbody tr").count() === 1, "the filter leaves the task");
  // Esc leads up, one level at a time.
  await page.goto(`${served.base}/read?${at("files/projects/silica.md")}`);
  for (const path of ["/browse/files?under=files%2Fprojects", "/browse/files", "/browse", "/"]) {
    await page.keyboard.press("Escape");
    await page.waitForURL(`${served.base}${path}`);
    if (path === "/") break;
  }
  // What is half typed stays, whatever happens meanwhile.
  await page.goto(`${served.base}/browse/entities`);
  await page.locator("main[data-listening=yes]").waitFor();
  await page.locator("input[name=words]").fill("ali");
  await page.locator("h1").click();
  await served.call("entity_batch", { entities: [{ name: "Harbor", type: "project", observations: ["Has a new crane"] }] });
  await page.locator("#news", { hasText: "entity batch" }).waitFor();
  await page.waitForTimeout(600);
  check(await page.locator("input[name=words]").inputValue() === "ali", "a half-typed filter stays");
}

// An edit is saved; a second one, begun before someone else's, is not lost and loses nothing.
export async function edit({ page, served, look }) {
  await page.goto(`${served.base}/read?${at("files/projects/harbor.md")}`);
  await page.keyboard.press("e");
  const text = page.locator("textarea");
  await text.waitFor();
  await look(page, "edit");
  await text.fill(`${await text.inputValue()}\nAsk Bo first.\n`);
  await page.locator("input[name=reason]").fill("Bo wants to know");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".done").waitFor();
  check((await page.locator("article").innerText()).includes("Ask Bo first."), "the edit is there");
  check((await served.call("read", { address: "file:/memories/projects/harbor.md" })).text.endsWith("Ask Bo first.\n"), "as it was typed");
}

export async function conflict({ page, served, look }) {
  await page.goto(`${served.base}/edit?${at("files/projects/harbor.md")}`);
  await page.locator("main[data-listening=yes]").waitFor();
  const text = page.locator("textarea");
  await text.fill((await text.inputValue()).replace("Ask Bo first.", "Ask Alice first."));
  await served.call("file_replace", { path: "/memories/projects/harbor.md", old: "Ask Bo first.", new: "Ask nobody." });
  await page.locator("#news", { hasText: "has changed this meanwhile" }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".compare").waitFor();
  check((await page.locator(".compare .removed").innerText()).includes("Ask nobody."), "theirs is on the left");
  check((await page.locator(".compare .added").innerText()).includes("Ask Alice first."), "mine is on the right");
  check((await served.call("read", { address: "file:/memories/projects/harbor.md" })).text.includes("Ask nobody."), "nothing was overwritten");
  await look(page, "conflict");
  // What was typed came back with the page, and is not left by a key.
  await page.locator("textarea").blur();
  await page.keyboard.press("Escape");
  await page.locator("#news", { hasText: "not saved" }).waitFor();
  await page.getByRole("button", { name: "Save mine instead" }).click();
  await page.locator(".done").waitFor();
  check((await page.locator("article").innerText()).includes("Ask Alice first."), "mine is saved");
}

export async function history({ page, served, look }) {
  await page.goto(`${served.base}/read?${at("files/projects/harbor.md")}`);
  await page.keyboard.press("h");
  await page.locator(".changes").waitFor();
  check(await page.locator(".changes > li").count() === 5, "every change is told");
  check(await page.locator("q", { hasText: "Bo wants to know" }).count() === 1, "with its reason");
  await look(page, "history");
  await page.locator(".changes a").first().click();
  await page.locator(".compare").waitFor();
  check(await page.locator(".compare .added").count() === 1, "a change shows what it did");
  await look(page, "diff");
  await page.getByRole("link", { name: "Compare with now" }).click();
  await page.getByText("No difference.").waitFor();
}

export async function restore({ page, served }) {
  await page.goto(`${served.base}/history?${at("files/projects/harbor.md")}`);
  await page.getByRole("button", { name: /Restore/ }).last().click();
  await page.locator(".done", { hasText: "Restored" }).waitFor();
  const { text } = await served.call("read", { address: "file:/memories/projects/harbor.md" });
  check(text.includes("through `make ship`.") && !text.includes("Alice"), "the first text is back");
}

export async function records({ page, served, look }) {
  await page.goto(`${served.base}/browse/records?text=theme`);
  await page.locator("tbody a").click();
  await page.locator("summary").waitFor();
  await page.keyboard.press("e");
  await page.locator("textarea").fill("Write the theme loader for Silica, with tests.");
  await look(page, "record");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".done").waitFor();
  check((await page.locator("article").innerText()).includes("with tests"), "the record is changed");
  // What someone else does to it is shown, and only told while it is edited.
  const id = new URL(page.url()).searchParams.get("id");
  await page.locator("main[data-listening=yes]").waitFor();
  await served.call("record_update", { id, content: "Write the theme loader, and document it." });
  await page.locator("article", { hasText: "document it" }).waitFor();
  await page.keyboard.press("e");
  check(await page.evaluate(() => document.activeElement.matches("textarea")), "the text has the focus");
  await page.locator("textarea").fill("Mine.");
  await served.call("record_update", { id, content: "Theirs." });
  await page.locator("#news", { hasText: "has changed this meanwhile" }).waitFor();
  check(await page.locator("textarea").inputValue() === "Mine.", "what is typed stays");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".compare").waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".done").waitFor();
}

// What an agent writes appears by itself, and can be taken back.
export async function undo({ page, served, look }) {
  await page.goto(`${served.base}/timeline`);
  await page.mouse.move(0, 0);
  await page.locator("main[data-listening=yes]").waitFor();
  await served.call("file_create", { path: "/memories/mistake.md", text: "An agent was wrong.", reason: "a guess" });
  const row = page.locator(".changes > li", { hasText: "files/mistake.md" }).first();
  await row.waitFor();
  await look(page, "timeline");
  await row.getByRole("button", { name: /Undo/ }).click();
  await page.locator(".done", { hasText: "Undone" }).waitFor();
  const gone = await served.call("read", { address: "file:/memories/mistake.md" }).catch((error) => error.told);
  check(gone.kind === "not_found" || gone.status === 404, "the file is gone again");
  check(!page.url().includes("done="), "what was done is told once");
  await page.getByRole("button", { name: /Redo/ }).first().click();
  await page.locator(".done", { hasText: "Done again" }).waitFor();
  check((await served.call("read", { address: "file:/memories/mistake.md" })).text === "An agent was wrong.", "the undo is undone");
}

// A button that is pointed at, or that the keys have come to, does not move away.
export async function aim({ page, served }) {
  const write = (name) => served.call("file_create", { path: `/memories/${name}.md`, text: name });
  await write("aimed-at");
  for (const path of ["/timeline", "/"]) {
    await page.goto(`${served.base}${path}`);
    await page.locator("main[data-listening=yes]").waitFor();
    const row = page.locator(".changes > li", { hasText: "files/aimed-at.md" }).first();
    const button = row.getByRole("button");
    const label = await button.getAttribute("aria-label");
    await (path === "/" ? button.focus() : button.hover());
    const name = `later${path.length}`;
    await write(name);
    await page.locator("#news", { hasText: "1 new change: file create by" }).waitFor();
    await page.waitForTimeout(500);
    const held = await page.evaluate((path) => (path === "/" ? document.activeElement : document.querySelector("button:hover"))?.ariaLabel, path);
    check(held === label, `${path}: ${held} is under the pointer, not ${label}`);
    await page.locator("#news").getByRole("button", { name: "Show" }).click();
    await page.locator(".changes > li", { hasText: `files/${name}.md` }).first().waitFor();
  }
  // Where nothing may be drawn anew by itself, that something changed is said.
  for (const path of ["/graph", "/doctor", "/conflicts", "/?q=tea"]) {
    await page.goto(`${served.base}${path}`);
    await page.locator("main[data-listening=yes]").waitFor();
    await write(`told-${path.replaceAll(/\W/g, "")}`);
    await page.locator("#news", { hasText: "Something changed." }).waitFor();
  }
  await page.mouse.move(0, 0);
}

export async function graph({ page, served, look }) {
  await page.goto(`${served.base}/graph`);
  const canvas = page.locator("#graph[data-state=rest]");
  await canvas.waitFor({ timeout: 60000 });
  check(Number(await canvas.getAttribute("data-things")) >= 12, "notes, entities, nodes and files are drawn");
  const data = await page.evaluate(async () => (await fetch("/graph/data")).json());
  const ends = data.links.map(([from, to, kind]) => `${data.things[from].label} ${kind} ${data.things[to].label}`);
  for (const link of ["Alice Moreau works on Silica", "memory links to projects", "Review part_of Silica (node)", "people links to Bo Lindqvist"]) {
    check(ends.includes(link), `${link} is a link: ${ends.join("; ")}`);
  }
  check(await page.locator("#legend button").count() > 3, "kinds can be chosen");
  await look(page, "graph");
  await page.locator("#graph-find").fill("bo lind");
  await page.locator("#graph-find").press("Enter");
  await page.locator("h1", { hasText: "Bo Lindqvist" }).waitFor();
  await page.goto(`${served.base}/graph`);
  await canvas.waitFor({ timeout: 60000 });
  await page.locator("#graph-find").fill("alice");
  // A click on a thing opens it: the place of the picture's middle thing is asked of the picture.
  const box = await page.locator("#graph").boundingBox();
  for (let x = 40; x < box.width && page.url().endsWith("/graph"); x += 24) {
    for (let y = 40; y < box.height - 60; y += 24) {
      await page.mouse.move(box.x + x, box.y + y);
      if (await page.locator("#graph").evaluate((canvas) => canvas.style.cursor) === "pointer") {
        await page.mouse.click(box.x + x, box.y + y);
        await page.waitForURL((url) => url.pathname !== "/graph", { timeout: 3000 }).catch(() => {});
        if (!page.url().endsWith("/graph")) break;
      }
    }
  }
  check(page.url().includes("/read"), "a click opens a thing");
}

export async function others({ page, served, look }) {
  for (const name of ["decisions", "statistics", "doctor", "browse"]) {
    await page.goto(`${served.base}/${name}`);
    await look(page, name);
  }
  await page.goto(`${served.base}/doctor`);
  await page.getByRole("button", { name: "Fix" }).click();
  await page.locator(".done", { hasText: /fix/i }).waitFor();
  await conflicts({ page, served, look });
  await page.goto(`${served.base}/edit?under=files`);
  await look(page, "new");
  await page.locator("input[name=at]").fill("files/made-here.md");
  await page.locator("textarea").fill("\nA first line that is empty stays.");
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator(".done").waitFor();
  const made = await served.call("read", { address: "file:/memories/made-here.md" });
  check(made.text === "\nA first line that is empty stays.", "a new file is as it was typed");
  await page.goto(`${served.base}/s/default/timeline`);
  const out = await page.locator("header a:not([href^='/s/default/']), main a:not([href^='/s/default/'])").count();
  check(out === 0, "links of a space stay in it");
  await page.keyboard.press("?");
  await page.locator("#help[open]").waitFor();
  await look(page, "keys");
  await page.keyboard.press("Escape");
  page.expectsErrors = true;
  await page.goto(`${served.base}/read?${at("files/nothing.md")}`);
  check(await page.locator(".error").count() === 1, "what is missing is told kindly");
  await look(page, "missing");
  page.expectsErrors = false;
}

// Copies that a sync tool left: one is merged, one is only settled by taking a side.
async function conflicts({ page, served, look }) {
  const copy = (name) => `files/${name}.sync-conflict-20260131-120000-ABCDEFG.md`;
  await served.call("file_create", { path: "/memories/both.md", text: "one\ntwo\nthree\n" });
  await served.call("file_replace", { path: "/memories/both.md", old: "one", new: "ONE" });
  served.place(copy("both"), "one\ntwo\nTHREE\n");
  served.place("files/alone.md", "ours\n");
  served.place(copy("alone"), "<img src=x onerror=alert(1)> theirs\n");
  await page.goto(`${served.base}/doctor`);
  await page.getByRole("link", { name: "conflicts" }).click();
  const item = (name) => page.locator("li", { hasText: copy(name) });
  await item("both").waitFor();
  await look(page, "conflicts");
  await item("both").getByRole("button", { name: "Merge" }).click();
  await page.locator(".done", { hasText: "Merged" }).waitFor();
  check(await item("both").count() === 0, "a merged copy is gone");
  const both = await served.call("read", { address: "file:/memories/both.md" });
  check(both.text === "ONE\ntwo\nTHREE\n", "both sides are in the file");
  await item("alone").getByRole("button", { name: "Merge" }).click();
  await page.locator(".warning", { hasText: copy("alone") }).waitFor();
  await look(page, "conflicts-left");
  await item("alone").getByRole("button", { name: "Take the copy" }).click();
  await page.locator(".done", { hasText: "Merged" }).waitFor();
  const alone = await served.call("read", { address: "file:/memories/alone.md" });
  check(alone.text.includes("theirs"), "the copy was taken");
}

// Changes stand under the days of whoever reads, wherever that is.
export async function days({ room, served, state }) {
  for (const timezoneId of ["Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
    const { context, page } = await room(state, { timezoneId });
    await page.goto(`${served.base}/timeline`);
    const told = await page.evaluate(() => [...document.querySelectorAll("h3.day")].flatMap((day) =>
      [...day.nextElementSibling.querySelectorAll("li > .facts time")].map((time) => [day.textContent, new Date(time.dateTime).toLocaleDateString("sv")])));
    check(told.length > 5 && told.every(([day, own]) => day === own), `${timezoneId}: ${JSON.stringify(told.find(([day, own]) => day !== own))}`);
    await context.close();
  }
}

// Dark by the system's wish, light by the button, and so it stays.
export async function dark({ room, served, look, state }) {
  const { context, page } = await room(state, { colorScheme: "dark" });
  const back = () => page.evaluate(() => getComputedStyle(document.body.parentElement).backgroundColor);
  for (const [path, name] of [["/?q=tea", "search"], [`/read?${at("files/preferences.md")}`, "read"], ["/timeline", "timeline"], ["/graph", "graph"], ["/statistics", "statistics"], ["/browse/records", "records"]]) {
    await page.goto(`${served.base}${path}`);
    check(await back() === "rgb(19, 22, 20)", "the system's wish for dark is heard");
    if (name === "graph") await page.locator("#graph[data-state]").waitFor();
    await look(page, `dark-${name}`);
  }
  await page.locator("#theme").click();
  check(await back() === "rgb(251, 250, 247)", "the button makes it light");
  await page.reload();
  check(await back() === "rgb(251, 250, 247)", "and it stays light");
  await context.close();
}

export async function phone({ room, served, look, state }) {
  const { context, page } = await room(state, { viewport: { width: 375, height: 740 }, isMobile: true, hasTouch: true });
  const paths = { welcome: "/", search: "/?q=tea", read: `/read?${at("files/projects/silica.md")}`, records: "/browse/records", entities: "/browse/entities",
    timeline: "/timeline", graph: "/graph", edit: `/edit?${at("files/preferences.md")}`, statistics: "/statistics", history: `/history?${at("files/projects/harbor.md")}`, doctor: "/doctor", missing: `/read?${at("files/nothing.md")}` };
  for (const [name, path] of Object.entries(paths)) {
    await page.goto(`${served.base}${path}`);
    if (name === "graph") await page.locator("#graph[data-state]").waitFor();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(over <= 0, `${name} is ${over} pixels too wide for a phone`);
    const tab = name === "missing" ? null : await page.locator("header nav [aria-current=page]").boundingBox();
    check(tab === null || (tab.x >= 0 && tab.x + tab.width <= 375), `the tab of ${name} is in sight`);
    await look(page, `phone-${name}`);
    page.expectsErrors = name === "doctor";
  }
  page.expectsErrors = false;
  await served.call("file_create", { path: "/memories/phone.md", text: "# Phone\n\nCharge it at night.\n" });
  await served.call("file_replace", { path: "/memories/phone.md", old: "at night", new: "in the morning, before the walk" });
  await page.goto(`${served.base}/history?${at("files/phone.md")}`);
  await page.locator(".changes a").first().click();
  const row = page.locator(".compare tr:not(.same):has(.removed)").first();
  const [cut, added] = [await row.locator(".removed").boundingBox(), await row.locator(".added").boundingBox()];
  check(added.y > cut.y && added.width > 250, "the two sides of a change stand one below the other");
  await look(page, "phone-diff");
  // A table is moved within itself, and its words and numbers are whole.
  await served.call("file_create", { path: "/memories/wide.md", text: `# Wide\n\n|${"measurement|".repeat(6)}\n|${"-:|".repeat(6)}\n|${"1234567.89|".repeat(6)}\n` });
  await page.goto(`${served.base}/read?${at("files/wide.md")}`);
  const cell = await page.locator("article td").first().evaluate((td) => ({ height: td.clientHeight, align: getComputedStyle(td).textAlign }));
  check(cell.height < 50 && cell.align === "right", `a number is whole and to the right: ${JSON.stringify(cell)}`);
  check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is no wider than the phone");
  await look(page, "phone-table");
  await context.close();
}

// All that the first search page loads, over the wire, is small.
export async function weight({ room, served, state }) {
  const { context, page } = await room(state);
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => { bytes += encodedDataLength; });
  await page.goto(`${served.base}/`, { waitUntil: "load" });
  await page.locator("main[data-listening=yes]").waitFor();
  await context.close();
  check(bytes > 5000 && bytes < 100 * 1024, `the search page takes ${bytes} bytes`);
  return `${bytes} bytes for the search page`;
}

// The watch is awake: what wants to run, and what wants to be loaded from elsewhere, is noticed.
export async function watch({ page, served, wrong }) {
  await page.goto(`${served.base}/timeline`);
  const before = wrong.length;
  await page.evaluate(() => { document.querySelector("main").innerHTML = "<img src=x onerror=alert(1)><img src=https://evil.example/x.png>"; });
  await page.waitForTimeout(500);
  const noticed = wrong.splice(before);
  check(noticed.some((text) => text.includes("inline event handler")), `a script is noticed: ${noticed.join("; ")}`);
  check(noticed.some((text) => text.includes("evil.example")), `another site is noticed: ${noticed.join("; ")}`);
}
