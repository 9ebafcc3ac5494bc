// A browser whose every page is watched: no error on its console, no request to another site, no dialog, no script
// of a memory, no serious finding of axe.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export async function watching(tools, screens, base) {
  const require = createRequire(join(resolve(tools), "package.json"));
  const { chromium } = require("playwright-core");
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  const wrong = [];
  const seen = { pages: 0, requests: 0, checked: 0, screens: 0 };

  function watch(page, name = () => page.url()) {
    page.on("console", (message) => {
      // A picture that a memory names and that is not there is no error of the page.
      const isMissing = message.location().url.startsWith(`${base}/api/content?`) && message.text().includes("404");
      if (message.type() === "error" && !page.expectsErrors && !isMissing) wrong.push(`console on ${name()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`error on ${name()}: ${error.message}`));
    page.on("request", (request) => {
      seen.requests++;
      const url = request.url();
      if (!url.startsWith(`${base}/`) && !url.startsWith("data:") && !url.startsWith("blob:")) wrong.push(`third party on ${name()}: ${url}`);
    });
    page.on("dialog", async (dialog) => {
      if (dialog.type() !== "beforeunload") wrong.push(`dialog on ${name()}: ${dialog.message()}`);
      await dialog.accept();
    });
    page.on("popup", () => wrong.push(`popup on ${name()}`));
    return page;
  }

  // Opens a context that has been let in already.
  async function room(state, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 820 }, ...options, storageState: state });
    return { context, page: watch(await context.newPage()) };
  }

  async function isUntouched(page) {
    const pwned = await page.evaluate(() => globalThis.pwned ?? null);
    if (pwned !== null) wrong.push(`script of a memory ran on ${page.url()}: ${pwned}`);
  }

  // Looks at a page: keeps a picture of it, and asks axe. The page's policy forbids foreign scripts, so axe comes
  // in by the door of the debugger.
  async function look(page, name) {
    seen.pages++;
    await isUntouched(page);
    await page.screenshot({ path: join(screens, `${name}.png`) });
    seen.screens++;
    await page.evaluate(`(() => { if (!globalThis.axe) { ${axe} } })()`);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    seen.checked++;
    for (const { id, impact, nodes } of found.violations) {
      if (impact !== "serious" && impact !== "critical") continue;
      wrong.push(`axe on ${name}: ${impact} ${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`).join(" | ")}`);
    }
  }

  return { browser, wrong, seen, watch, room, look, isUntouched };
}

export function check(holds, what) {
  if (!holds) throw new Error(what);
}
