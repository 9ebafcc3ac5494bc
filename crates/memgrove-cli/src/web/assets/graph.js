// Draws the whole memory and lets one move in it. Text reaches the page as text alone.
import { Forces } from "./forces.js";

const canvas = document.querySelector("#graph");
if (canvas) start(await (await fetch(canvas.dataset.source)).json());

function start({ things, links }) {
  const paint = canvas.getContext("2d");
  const forces = new Forces(things.length, links, things.map((thing) => Math.sqrt(thing.count)));
  const kinds = [...new Set(things.map((thing) => thing.kind))]
    .map((kind) => [kind, things.reduce((sum, thing) => sum + (thing.kind === kind ? thing.count : 0), 0)])
    .sort((a, b) => b[1] - a[1]);
  const colourOf = new Map(kinds.map(([kind], index) => [kind, index % 8]));
  const radius = things.map((thing) => Math.min(22, 3 + Math.sqrt(thing.links) * 1.2 + (thing.count > 1 ? 4 + Math.log2(thing.count) : 0)));
  const near = things.map(() => new Set());
  for (const [from, to] of links) { near[from].add(to); near[to].add(from); }
  const hidden = new Set();
  const view = { x: 0, y: 0, scale: 1, isOwn: false };
  const state = { hover: -1, wanted: "", held: -1, ink: {}, width: 0, height: 0, frames: 0, spent: 0 };
  const isShown = (index) => !hidden.has(things[index].kind);

  function readInk() {
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(name).trim();
    state.ink = { text: ink("--fg"), line: ink("--edge"), back: ink("--bg"), accent: ink("--accent"),
      kinds: [0, 1, 2, 3, 4, 5, 6, 7].map((n) => ink(`--kind-${n}`)) };
  }

  function resize() {
    const box = canvas.getBoundingClientRect(), dense = Math.min(2, devicePixelRatio || 1);
    state.width = box.width; state.height = box.height;
    canvas.width = Math.round(box.width * dense); canvas.height = Math.round(box.height * dense);
    paint.setTransform(dense, 0, 0, dense, 0, 0);
    wake();
  }

  function fit() {
    let left = Infinity, right = -Infinity, top = Infinity, low = -Infinity;
    for (let i = 0; i < things.length; i++) {
      if (!isShown(i)) continue;
      left = Math.min(left, forces.x[i]); right = Math.max(right, forces.x[i]);
      top = Math.min(top, forces.y[i]); low = Math.max(low, forces.y[i]);
    }
    if (left === Infinity) return;
    const scale = Math.min(2.2, state.width / (right - left + 80), state.height / (low - top + 80));
    view.scale += (scale - view.scale) * 0.25;
    view.x += ((left + right) / 2 - view.x) * 0.25;
    view.y += ((top + low) / 2 - view.y) * 0.25;
  }

  const toScreen = (i) => [(forces.x[i] - view.x) * view.scale + state.width / 2, (forces.y[i] - view.y) * view.scale + state.height / 2];
  const toWorld = (x, y) => [(x - state.width / 2) / view.scale + view.x, (y - state.height / 2) / view.scale + view.y];
  const size = (i) => Math.max(1.5, radius[i] * Math.min(1.4, Math.sqrt(view.scale)));

  function isLit(i) {
    if (state.wanted) return things[i].label.toLowerCase().includes(state.wanted);
    return state.hover < 0 || i === state.hover || near[state.hover].has(i);
  }

  function draw() {
    const { ink } = state;
    paint.clearRect(0, 0, state.width, state.height);
    paint.lineWidth = 1;
    for (const lit of [false, true]) {
      paint.beginPath();
      // Many links are a texture, not lines.
      paint.globalAlpha = lit ? 1 : Math.min(1, Math.max(0.25, 900 / links.length));
      paint.strokeStyle = lit && state.hover >= 0 ? ink.accent : ink.line;
      for (const [from, to] of links) {
        if (!isShown(from) || !isShown(to)) continue;
        if ((state.hover >= 0 && (from === state.hover || to === state.hover)) !== lit) continue;
        const [ax, ay] = toScreen(from), [bx, by] = toScreen(to);
        paint.moveTo(ax, ay); paint.lineTo(bx, by);
      }
      paint.stroke();
    }
    for (const lit of [false, true]) {
      paint.globalAlpha = lit ? 1 : 0.22;
      for (let colour = 0; colour < 8; colour++) {
        paint.beginPath();
        for (let i = 0; i < things.length; i++) {
          if (!isShown(i) || colourOf.get(things[i].kind) !== colour || isLit(i) !== lit) continue;
          const [x, y] = toScreen(i), r = size(i);
          paint.moveTo(x + r, y); paint.arc(x, y, r, 0, 6.2832);
        }
        paint.fillStyle = ink.kinds[colour];
        paint.fill();
      }
    }
    paint.globalAlpha = 1;
    names();
  }

  // As many names as fit, the most linked first.
  const byRank = things.map((_, i) => i).sort((a, b) => radius[b] - radius[a]);
  function names() {
    const taken = [];
    paint.font = "12px system-ui, sans-serif";
    paint.textAlign = "center";
    paint.lineJoin = "round";
    const order = state.hover >= 0 ? [state.hover, ...near[state.hover], ...byRank] : byRank;
    let tried = 0;
    for (const i of order) {
      if (taken.length >= 60 || tried++ > 400) break;
      if (!isShown(i) || !isLit(i) || (size(i) < 4 && state.hover < 0 && !state.wanted && view.scale < 0.8)) continue;
      const [x, y] = toScreen(i);
      if (x < 0 || y < 0 || x > state.width || y > state.height) continue;
      const label = things[i].label.length > 32 ? `${things[i].label.slice(0, 31)}…` : things[i].label;
      const width = paint.measureText(label).width + 6, at = Math.max(14, y - size(i) - 4);
      // A name at the edge is moved until it is whole.
      const mid = Math.max(width / 2, Math.min(state.width - width / 2, x));
      if (taken.some(([tx, ty, tw]) => Math.abs(tx - mid) < (tw + width) / 2 && Math.abs(ty - at) < 14)) continue;
      taken.push([mid, at, width]);
      paint.strokeStyle = state.ink.back; paint.lineWidth = 3; paint.strokeText(label, mid, at);
      paint.fillStyle = state.ink.text; paint.fillText(label, mid, at);
    }
  }

  let asked = 0;
  function wake() { asked ||= requestAnimationFrame(frame); }

  function frame() {
    asked = 0;
    const began = performance.now();
    if (!forces.isAtRest) forces.step();
    if (!view.isOwn) fit();
    draw();
    state.frames++;
    state.spent += performance.now() - began;
    canvas.dataset.frames = state.frames;
    canvas.dataset.milliseconds = (state.spent / state.frames).toFixed(2);
    canvas.dataset.state = forces.isAtRest ? "rest" : "moving";
    if (!forces.isAtRest || state.held >= 0) wake();
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  function under(x, y) {
    let best = -1, least = 14;
    for (let i = 0; i < things.length; i++) {
      if (!isShown(i)) continue;
      const [sx, sy] = toScreen(i), far = Math.hypot(sx - x, sy - y) - size(i);
      if (far < least) { least = far; best = i; }
    }
    return best;
  }

  function zoom(x, y, by) {
    const [wx, wy] = toWorld(x, y);
    view.isOwn = true;
    view.scale = Math.max(0.03, Math.min(8, view.scale * by));
    const [nx, ny] = toWorld(x, y);
    view.x += wx - nx; view.y += wy - ny;
    wake();
  }

  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    fingers.set(event.pointerId, [x, y]);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    state.held = fingers.size === 1 ? under(x, y) : -1;
    if (state.held >= 0) forces.held[state.held] = 1;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event), before = fingers.get(event.pointerId);
    if (!before) {
      const hover = under(x, y);
      if (hover !== state.hover) { state.hover = hover; canvas.style.cursor = hover >= 0 && leadsTo(hover) ? "pointer" : "grab"; wake(); }
      return;
    }
    fingers.set(event.pointerId, [x, y]);
    moved += Math.hypot(x - before[0], y - before[1]);
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()], [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const was = Math.hypot(before[0] - other[0], before[1] - other[1]) || 1;
      zoom((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, Math.hypot(a[0] - b[0], a[1] - b[1]) / was);
    } else if (state.held >= 0 && moved > 4) {
      [forces.x[state.held], forces.y[state.held]] = toWorld(x, y);
      forces.warm(0.25);
    } else if (state.held < 0) {
      view.isOwn = true;
      view.x -= (x - before[0]) / view.scale; view.y -= (y - before[1]) / view.scale;
    }
    wake();
  });
  const release = (event) => {
    fingers.delete(event.pointerId);
    const held = state.held;
    if (held >= 0) forces.held[held] = 0;
    state.held = -1;
    if (event.type === "pointerup" && held >= 0 && moved <= 4) open(held);
    wake();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { state.hover = -1; wake(); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(...at(event), Math.exp(-event.deltaY * 0.0015));
  }, { passive: false });
  canvas.addEventListener("dblclick", () => { view.isOwn = false; forces.warm(0.05); wake(); });
  canvas.addEventListener("keydown", (event) => {
    const by = 60 / view.scale;
    const acts = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] };
    if (event.key === "+" || event.key === "=") zoom(state.width / 2, state.height / 2, 1.25);
    else if (event.key === "-") zoom(state.width / 2, state.height / 2, 0.8);
    else if (acts[event.key]) { view.isOwn = true; view.x += acts[event.key][0]; view.y += acts[event.key][1]; wake(); }
    else return;
    event.preventDefault();
  });

  // A cluster leads to all of its shape; what is only spoken of leads nowhere.
  function leadsTo(index) {
    const { at, count, shape } = things[index];
    if (at) return `${canvas.dataset.read}?${new URLSearchParams({ at })}`;
    return count > 1 && shape ? `${canvas.dataset.browse}/${shape}` : null;
  }

  function open(index) {
    const to = leadsTo(index);
    if (to) location.href = to;
  }

  const legend = document.querySelector("#legend");
  for (const [kind, count] of kinds.slice(0, 12)) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.kind = colourOf.get(kind);
    button.setAttribute("aria-pressed", "true");
    button.textContent = `${kind} ${count}`;
    button.addEventListener("click", () => {
      const isOff = hidden.delete(kind);
      if (!isOff) hidden.add(kind);
      button.setAttribute("aria-pressed", String(isOff));
      wake();
    });
    legend.append(button);
  }
  document.querySelector("#graph-find").addEventListener("input", (event) => {
    state.wanted = event.target.value.trim().toLowerCase();
    wake();
  });
  document.querySelector("#graph-find").addEventListener("keydown", (event) => {
    const best = byRank.find((i) => state.wanted && isShown(i) && isLit(i) && things[i].at);
    if (event.key !== "Enter" || !state.wanted) return;
    if (best !== undefined) return open(best);
    document.querySelector("#news").textContent = "Not in the picture: search for it.";
  });
  document.addEventListener("theme", () => { readInk(); wake(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readInk(); wake(); });
  new ResizeObserver(resize).observe(canvas);
  readInk();
  canvas.dataset.things = things.length;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    const until = performance.now() + 1500;
    while (!forces.isAtRest && performance.now() < until) forces.step();
    forces.heat = 0;
  }
  // A head start, so that the first picture is one already.
  const until = performance.now() + 120;
  for (let n = 0; n < 40 && !forces.isAtRest && performance.now() < until; n++) forces.step();
  resize();
  for (let n = 0; n < 30; n++) fit();
  wake();
}
