// SPDX-License-Identifier: Apache-2.0
// The lives of PyTorch's blocks as columns of numbers, ordered so that what is in sight is found at once.
import { list } from "./format.js";

// Columns are numbers with seven bits in a byte, deflated, in base64 (src/write/page_blocks.c).
async function bytesOf(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function reader(bytes) {
  let at = 0;
  return () => {
    let byte = bytes[at++];
    if (byte < 128) return byte;
    let n = byte & 127;
    for (let scale = 128; byte >= 128 && at < bytes.length; scale *= 128) {
      byte = bytes[at++];
      n += (byte & 127) * scale;
    }
    return n;
  };
}

const LEVELS = 33;
const levelOf = (length) => 32 - Math.clz32(length); // lives of level L last less than 2 to the power of L

// Blocks of about the same length are side by side, in order of birth: what is in sight begins at most that length before it.
export async function livesOf(blocks) {
  const lines = document.getElementById("cuwhy-islands").textContent.split("\n");
  const n = blocks.n;
  const next = reader(await bytesOf(lines[blocks.island] || ""));
  const read = { born: new Uint32Array(n), died: new Uint32Array(n), place: new Float64Array(n) };
  const size = new Uint32Array(n);
  const line = new Int32Array(n);
  const level = new Uint8Array(n);
  const counts = new Uint32Array(LEVELS + 1);
  for (let i = 0, at = 0; i < n; i++) read.born[i] = at += next();
  for (let i = 0; i < n; i++) {
    const length = next();
    read.died[i] = length ? read.born[i] + length : blocks.events + 1;
    level[i] = levelOf(read.died[i] - read.born[i]);
    counts[level[i] + 1]++;
  }
  for (let i = 0, at = 0; i < n; i++) {
    const step = next();
    read.place[i] = at += step % 2 ? -(step + 1) / 2 : step / 2;
  }
  for (let i = 0; i < n; i++) size[i] = next();
  for (let i = 0; i < n; i++) line[i] = next() - 1;
  const start = new Uint32Array(LEVELS + 1);
  for (let l = 0; l < LEVELS; l++) start[l + 1] = start[l] + counts[l + 1];
  const lives = {
    n,
    start,
    born: new Uint32Array(n),
    died: new Uint32Array(n),
    place: new Uint32Array(n),
    size: new Uint32Array(n),
    line: new Int32Array(n),
  };
  const to = start.slice();
  for (let i = 0; i < n; i++) {
    const at = to[level[i]]++;
    lives.born[at] = read.born[i];
    lives.died[at] = read.died[i];
    lives.place[at] = read.place[i];
    lives.size[at] = size[i];
    lives.line[at] = line[i];
  }
  return lives;
}

function firstFrom(born, low, high, x) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (born[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Calls `each(from, to)` for ranges that contain all lives between two events, short ones first.
export function inSight(lives, from, to, each) {
  for (let l = 0; l < LEVELS; l++) {
    const first = firstFrom(lives.born, lives.start[l], lives.start[l + 1], from - 2 ** l);
    const last = firstFrom(lives.born, first, lives.start[l + 1], to);
    if (last > first) each(first, last);
  }
}

// The line numbers that held the most, most first: bytes times events.
export function heaviestLines(lives, lines) {
  const area = new Float64Array(list(lines).length + 1);
  for (let i = 0; i < lives.n; i++) area[lives.line[i] + 1] += lives.size[i] * (lives.died[i] - lives.born[i]);
  return [...area.keys()]
    .filter((k) => area[k])
    .sort((a, b) => area[b] - area[a])
    .map((k) => k - 1);
}

// Paints the rectangles of a view into pixels: `colors` and `edges` by line + 1. Each costs its pixels and no more.
export function paint(lives, view, pixels, width, height, colors, edges) {
  const sx = width / (view.x1 - view.x0);
  const sy = height / (view.y1 - view.y0);
  const { born, died, place, size, line } = lives;
  let painted = 0;
  inSight(lives, view.x0, view.x1, (from, to) => {
    for (let i = from; i < to; i++) {
      if (died[i] <= view.x0) continue;
      const bottom = (place[i] - view.y0) * sy;
      const top = bottom + size[i] * sy;
      if (top <= 0 || bottom >= height) continue;
      let x = ((born[i] - view.x0) * sx) | 0;
      let end = ((died[i] - view.x0) * sx) | 0;
      if (end === x) end++;
      if (x < 0) x = 0;
      if (end > width) end = width;
      let y = height - Math.min(height, Math.ceil(top));
      let below = height - Math.max(0, Math.floor(bottom));
      if (below === y) below++;
      if (below > height) below = height;
      const color = colors[line[i] + 1];
      painted++;
      if (end - x === 1) {
        for (; y < below; y++) pixels[y * width + x] = color;
        continue;
      }
      const edge = end - x > 3 && below - y > 3;
      const dark = edges[line[i] + 1];
      for (let row = y; row < below; row++) {
        const base = row * width;
        pixels.fill(edge && row === y ? dark : color, base + x, base + end);
        if (edge) pixels[base + end - 1] = dark;
      }
    }
  });
  return painted;
}

// The block at an event and a place; -1 = none.
export function lifeAt(lives, x, y) {
  let found = -1;
  inSight(lives, x, x + 1, (from, to) => {
    for (let i = from; i < to; i++)
      if (lives.born[i] <= x && x < lives.died[i] && lives.place[i] <= y && y < lives.place[i] + lives.size[i])
        found = i;
  });
  return found;
}
