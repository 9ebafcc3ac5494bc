// Where the things of a graph lie: they repel each other, links pull, and all of it comes to rest.
// Repulsion is summed over a quadtree (Barnes and Hut), so a step costs n log n.

const THETA = 0.81; // Squared: how small a far square must look to count as one thing.
const REPEL = 620;
const LENGTH = 46;
const CENTRE = 0.035;
const KEEP = 0.62;
const COOL = 0.018;

export class Forces {
  constructor(count, links, weights) {
    this.count = count;
    this.links = links;
    this.mass = Float64Array.from(weights);
    this.x = new Float64Array(count);
    this.y = new Float64Array(count);
    this.vx = new Float64Array(count);
    this.vy = new Float64Array(count);
    this.held = new Uint8Array(count);
    this.degree = new Uint32Array(count);
    for (const [from, to] of links) { this.degree[from]++; this.degree[to]++; }
    // A spiral, the same each time, so that the picture is the same each time.
    for (let i = 0; i < count; i++) {
      const radius = 14 * Math.sqrt(i + 0.5);
      const angle = i * 2.399963;
      this.x[i] = radius * Math.cos(angle);
      this.y[i] = radius * Math.sin(angle);
    }
    const squares = 4 * count + 64;
    this.child = new Int32Array(squares * 4);
    this.sum = new Float64Array(squares);
    this.sx = new Float64Array(squares);
    this.sy = new Float64Array(squares);
    this.next = new Int32Array(count);
    this.stack = new Int32Array(4096);
    this.sizes = new Float64Array(4096);
    this.heat = 1;
  }

  get isAtRest() { return this.heat < 0.012; }

  warm(heat = 0.4) { this.heat = Math.max(this.heat, heat); }

  step() {
    this.pull();
    this.repel();
    const { x, y, vx, vy, held, count } = this;
    for (let i = 0; i < count; i++) {
      if (held[i]) { vx[i] = vy[i] = 0; continue; }
      vx[i] = (vx[i] - x[i] * CENTRE * this.heat) * KEEP;
      vy[i] = (vy[i] - y[i] * CENTRE * this.heat) * KEEP;
      const speed = Math.hypot(vx[i], vy[i]);
      const most = speed > 60 ? 60 / speed : 1;
      x[i] += vx[i] * most;
      y[i] += vy[i] * most;
    }
    this.heat -= this.heat * COOL;
  }

  pull() {
    const { x, y, vx, vy, degree } = this;
    for (const [from, to] of this.links) {
      const dx = x[to] - x[from] || 0.01;
      const dy = y[to] - y[from] || 0.01;
      const far = Math.hypot(dx, dy);
      const force = ((far - LENGTH) / far) * this.heat / Math.min(degree[from], degree[to]);
      const share = degree[from] / (degree[from] + degree[to]);
      vx[to] -= dx * force * share;
      vy[to] -= dy * force * share;
      vx[from] += dx * force * (1 - share);
      vy[from] += dy * force * (1 - share);
    }
  }

  // Children of a square: 0 is nothing, n > 0 the square n, n < 0 the thing -n - 1 (and those that lie on it).
  plant() {
    const { x, y, count, child, sum, sx, sy, next, mass } = this;
    let least = Infinity, most = -Infinity;
    for (let i = 0; i < count; i++) {
      least = Math.min(least, x[i], y[i]);
      most = Math.max(most, x[i], y[i]);
    }
    const size = Math.max(1, most - least);
    let used = 1;
    const clear = (square) => { child.fill(0, square * 4, square * 4 + 4); sum[square] = sx[square] = sy[square] = 0; };
    clear(0);
    for (let i = 0; i < count; i++) {
      let square = 0, half = size / 2, left = least, top = least;
      next[i] = -1;
      for (let depth = 0; ; depth++) {
        sum[square] += mass[i]; sx[square] += x[i] * mass[i]; sy[square] += y[i] * mass[i];
        const right = x[i] >= left + half ? 1 : 0, low = y[i] >= top + half ? 1 : 0;
        const slot = square * 4 + right + 2 * low;
        const there = child[slot];
        if (there === 0) { child[slot] = -i - 1; break; }
        if (there < 0) {
          const other = -there - 1;
          if (depth > 24 || used + 1 >= sum.length) { next[i] = other; child[slot] = -i - 1; break; }
          clear(used);
          child[slot] = used;
          // Whoever was there moves down, with all that lie on it.
          const inLeft = left + right * half, inTop = top + low * half, inHalf = half / 2;
          const r = x[other] >= inLeft + inHalf ? 1 : 0, l = y[other] >= inTop + inHalf ? 1 : 0;
          child[used * 4 + r + 2 * l] = there;
          for (let each = other; each >= 0; each = next[each]) {
            sum[used] += mass[each]; sx[used] += x[each] * mass[each]; sy[used] += y[each] * mass[each];
          }
          used++;
        }
        left += right * half; top += low * half; half /= 2;
        square = child[slot];
      }
    }
    return size;
  }

  repel() {
    const size = this.plant();
    const { x, y, vx, vy, count, child, sum, sx, sy, next, mass, stack, sizes, heat } = this;
    for (let i = 0; i < count; i++) {
      let top = 0, fx = 0, fy = 0;
      stack[0] = 0; sizes[0] = size;
      while (top >= 0) {
        const square = stack[top], width = sizes[top--];
        const dx = x[i] - sx[square] / sum[square], dy = y[i] - sy[square] / sum[square];
        const far = dx * dx + dy * dy;
        if (width * width < THETA * far) {
          const force = sum[square] / far;
          fx += dx * force; fy += dy * force;
          continue;
        }
        for (let slot = square * 4; slot < square * 4 + 4; slot++) {
          const there = child[slot];
          if (there > 0) { stack[++top] = there; sizes[top] = width / 2; }
          for (let other = there < 0 ? -there - 1 : -1; other >= 0; other = next[other]) {
            if (other === i) continue;
            const ox = x[i] - x[other] || (i - other) * 0.01, oy = y[i] - y[other] || 0.01;
            const force = mass[other] / Math.max(25, ox * ox + oy * oy);
            fx += ox * force; fy += oy * force;
          }
        }
      }
      vx[i] += fx * REPEL * heat * 0.1;
      vy[i] += fy * REPEL * heat * 0.1;
    }
  }
}
