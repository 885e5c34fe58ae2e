// SPDX-License-Identifier: Apache-2.0
// The lives of PyTorch's blocks as columns of numbers, ordered so that what is in sight is found at once.
import { list } from "./format.js";

function unpacked(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const words = atob(text);
  const bytes = new Uint8Array(words.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = words.charCodeAt(i);
  return bytes;
}

// Columns are numbers with seven bits in a byte, deflated, in base64 (src/show/page_blocks.c).
async function bytesOf(text) {
  const packed = unpacked(text);
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

// Blocks of about the same length are side by side, in order of birth: what is in sight begins at most that length
// before it.
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

// Pictures of everything, each twice as wide as the one before, made when first needed: a view that is not zoomed in
// far is copied from one of them, whatever the number of blocks. Their pixels are small numbers: 0 is nothing.
const WIDEST = 5; // doublings
const FEW = 60000; // blocks, that are as quickly painted

export function picturesOf(lives, whole, width, height, slots, edges) {
  const made = [];
  const picture = (k) => {
    if (!made[k]) {
      made[k] = new Uint8Array((width << k) * height);
      paint(lives, whole, made[k], width << k, height, slots, edges);
    }
    return made[k];
  };
  return {
    // False if the view needs more detail than there is.
    copy(view, pixels, colors) {
      const zoom = (whole.x1 - whole.x0) / (view.x1 - view.x0);
      const k = Math.ceil(Math.log2(zoom) - 1e-6);
      if (lives.n < FEW || k > WIDEST || view.y0 !== whole.y0 || view.y1 !== whole.y1) return false;
      const source = picture(k);
      const wide = width << k;
      const from = new Uint32Array(width);
      const each = wide / zoom / width;
      const start = ((view.x0 - whole.x0) / (whole.x1 - whole.x0)) * wide;
      for (let x = 0; x < width; x++) from[x] = Math.min(wide - 1, start + x * each);
      for (let y = 0, at = 0; y < height; y++) {
        const row = y * wide;
        for (let x = 0; x < width; x++) pixels[at++] = colors[source[row + from[x]]];
      }
      return true;
    },
    // One after the other, when there is time.
    prepare(k = 0) {
      if (lives.n < FEW || k > WIDEST) return;
      picture(k);
      setTimeout(() => this.prepare(k + 1), 30);
    },
  };
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
