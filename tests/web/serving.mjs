// A `memgrove serve` with a home and a store of its own.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

export async function serving(memgrove, spaces = []) {
  const home = mkdtempSync(join(tmpdir(), "memgrove-web-"));
  const env = { HOME: home, PATH: process.env.PATH };
  for (const space of spaces) spawnSync(memgrove, ["init", join(home, space)], { cwd: home, env });
  const others = spaces.flatMap((space) => ["--space", `${space}=${join(home, space)}`]);
  const child = spawn(memgrove, ["serve", "--listen", "127.0.0.1:0", ...others], { cwd: home, env, stdio: ["ignore", "pipe", "ignore"] });
  const link = await new Promise((told, failed) => {
    createInterface({ input: child.stdout }).once("line", told);
    child.once("exit", (code) => failed(new Error(`memgrove serve ended with ${code}`)));
  });
  const base = link.trim().split("/open")[0];
  const token = readFileSync(join(home, ".local/state/memgrove/serve-token"), "utf8").trim();

  // A verb over the API, as an agent would call it.
  async function call(verb, body, headers = {}) {
    const answer = await fetch(`${base}/api/${verb}`, {
      method: "POST", body: JSON.stringify(body),
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "x-memgrove-client": "claude", ...headers },
    });
    const told = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(`${verb}: ${answer.status} ${JSON.stringify(told)}`), { told });
    return told;
  }

  // A file of the store, written past memgrove, as an editor would.
  function place(path, text) {
    const at = join(home, ".memgrove", path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text);
  }

  async function end() {
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    const code = await ended;
    rmSync(home, { recursive: true, force: true });
    if (code !== 0) throw new Error(`memgrove serve ended with ${code}`);
  }

  return { base, link: link.trim(), token, home, call, place, end };
}
