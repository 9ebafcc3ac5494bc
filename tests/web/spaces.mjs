// Several spaces in one server.
import { check } from "./watching.mjs";

// Of several spaces, which one it is and the ways to the others are in sight on every page, on a phone too.
export async function spaces({ room, served, look, state }) {
  for (const [name, width] of [["phone", 375], ["wide", 1200]]) {
    const { context, page } = await room(state, { viewport: { width, height: 740 }, isMobile: width < 500, hasTouch: width < 500 });
    for (const path of ["/", "/s/work/timeline", "/s/work/doctor", "/s/a-space-with-a-rather-long-name/browse"]) {
      await page.goto(`${served.base}${path}`);
      const here = page.locator("header .spaces [aria-current=true]");
      check(await here.textContent() === (path.split("/")[2] || "default"), `${path} says which space it is`);
      for (const way of [here, page.locator("header nav [aria-current=page]")]) {
        const box = await way.boundingBox();
        check(box.x >= 0 && box.x + box.width <= width && box.height > 20, `on ${path}, ${await way.textContent()} is in sight: ${JSON.stringify(box)}`);
      }
      check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${path} is no wider than the screen`);
      await look(page, `spaces-${name}${path.replaceAll("/", "-")}`);
    }
    await page.goto(`${served.base}/`);
    const other = page.locator("header .spaces a", { hasText: "work" });
    const box = await other.boundingBox();
    check(box.x >= 0 && box.x + box.width <= width, `another space is in sight: ${JSON.stringify(box)}`);
    await (width < 500 ? other.tap() : other.click());
    await page.waitForURL(`${served.base}/s/work/`);
    await context.close();
  }
}
