// The web page in Chromium: run.mjs MEMGROVE TOOLS SCREENS [STEP...]
import { mkdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import * as hostile from "./hostile.mjs";
import * as journeys from "./journeys.mjs";
import { large } from "./large.mjs";
import { fill } from "./sample.mjs";
import { serving } from "./serving.mjs";
import { spaces } from "./spaces.mjs";
import { watching } from "./watching.mjs";

const [memgrove, tools, screens, ...only] = process.argv.slice(2);
rmSync(screens, { recursive: true, force: true });
mkdirSync(screens, { recursive: true });
const failed = [];
const totals = { pages: 0, requests: 0, checked: 0, screens: 0 };

// A server and a browser that is let in by the link that works once.
async function act(steps, prepare, others) {
  if (only.length > 0 && !Object.keys(steps).some((name) => only.includes(name))) return;
  const served = await serving(resolve(memgrove), others);
  const eyes = await watching(tools, screens, served.base);
  try {
    const context = await eyes.browser.newContext({ viewport: { width: 1200, height: 820 } });
    const page = eyes.watch(await context.newPage());
    page.setDefaultTimeout(15000);
    await page.goto(served.link);
    await page.waitForURL(`${served.base}/`);
    const state = await context.storageState();
    const prepared = await prepare?.(served);
    if (prepared) console.log(`  ${prepared}`);
    for (const [name, step] of Object.entries(steps)) {
      if (only.length > 0 && !only.includes(name)) continue;
      const began = Date.now();
      try {
        const told = await step({ ...eyes, page, served, state });
        console.log(`  ${name}: ${((Date.now() - began) / 1000).toFixed(1)} s${told ? `, ${told}` : ""}`);
      } catch (error) {
        failed.push(`${name}: ${error.stack.split("\n").slice(0, 6).join("\n")}`);
        await page.screenshot({ path: `${screens}/failed-${name}.png` }).catch(() => {});
      }
    }
    failed.push(...eyes.wrong);
    for (const key of Object.keys(totals)) totals[key] += eyes.seen[key];
  } finally {
    await eyes.browser.close();
    await served.end().catch((error) => failed.push(error.message));
  }
}

await act({ ...pick(journeys, ["weight", "search", "read", "browse", "edit", "conflict", "history", "restore", "records", "undo", "aim", "graph", "others", "days", "dark", "phone", "watch"]) }, fill);
await act({ spaces }, null, ["work", "family", "a-space-with-a-rather-long-name"]);
await act({ hostile: hostile.show }, hostile.store);
await act({ large });

function pick(from, names) {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

for (const failure of new Set(failed)) console.error(`FAILED ${failure}`);
console.log(`web: ${totals.pages} pages looked at, ${totals.checked} checked by axe, ${totals.screens} screenshots, ${totals.requests} requests, ${failed.length} failures`);
process.exit(failed.length > 0 ? 1 : 0);
