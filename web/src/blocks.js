// SPDX-License-Identifier: Apache-2.0
// Every block of PyTorch over time: a band from its allocation to its free, at its place in memory. Zooms to one block.
import { css } from "./chart.js";
import { clear, el, missing, scroller, showMore, table, unbroken } from "./dom.js";
import { bytes, count, isNumber, list, many, object, percent, seconds } from "./format.js";
import { heaviestLines, lifeAt, livesOf, paint, picturesOf } from "./lives.js";

const UNIT = 512;
const HEIGHT = 420;
const COLORS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];
const SLOTS = COLORS.length + 2;
const ROWS = 40; // of the table
const LEAST = 8; // events in sight

const rgba = (words) => {
  const [r, g, b] = words.match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16));
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
};
const darker = (color) => {
  const part = (shift) => Math.round(((color >>> shift) & 255) * 0.72) << shift;
  return ((255 << 24) | part(16) | part(8) | part(0)) >>> 0;
};

// When an event was; times are kept for some of them.
function timeOf(blocks, event) {
  const us = list(blocks.us);
  if (!us.length || us[us.length - 1] === us[0]) return null;
  const at = Math.max(0, event) / blocks.stride;
  const i = Math.min(us.length - 1, Math.floor(at));
  const next = Math.min(us.length - 1, i + 1);
  return us[i] + (us[next] - us[i]) * (at - i);
}

const when = (blocks, event) => {
  const us = timeOf(blocks, event);
  return us === null ? `event ${count(Math.round(event))}` : `${seconds(us / 1e6)} (event ${count(Math.round(event))})`;
};

function lifeWords(blocks, lives, i) {
  const ended = lives.died[i] <= blocks.events;
  const name = list(blocks.lines)[lives.line[i]] || "no line known";
  return (
    `${bytes(lives.size[i] * UNIT)} from ${name}: ` +
    (lives.born[i] ? `allocated at ${when(blocks, lives.born[i])}, ` : "there from the start, ") +
    (ended ? `freed at ${when(blocks, lives.died[i])}` : "not freed")
  );
}

function lifeTable(blocks, lives) {
  const area = (i) => lives.size[i] * (lives.died[i] - lives.born[i]);
  const top = [];
  let least = 0;
  for (let i = 0; i < lives.n; i++) {
    if (top.length === ROWS && area(i) <= least) continue;
    top.push(i);
    top.sort((a, b) => area(b) - area(a)).splice(ROWS);
    least = area(top[top.length - 1]);
  }
  return el(
    "details",
    {},
    el("summary", {}, `The ${many(top.length, "block")} that held most for longest, as a table`),
    scroller(
      "Blocks as a table",
      table(
        "Blocks",
        ["line", { n: "size" }, "allocated", "freed"],
        top.map((i) => [
          unbroken(list(blocks.lines)[lives.line[i]] || "no line known"),
          { n: bytes(lives.size[i] * UNIT) },
          lives.born[i] ? when(blocks, lives.born[i]) : "before the first event",
          lives.died[i] <= blocks.events ? when(blocks, lives.died[i]) : "not freed",
        ]),
      ),
    ),
  );
}

// The picture, its view, and what moves it.
function timelineOf(blocks, lives, box, said, range) {
  const canvas = el("canvas", { height: HEIGHT });
  const whole = { x0: 0, x1: blocks.events + 1, y0: 0, y1: Math.max(1, blocks.height / UNIT) };
  const heavy = heaviestLines(lives, blocks.lines);
  const view = { ...whole };
  let width = 0;
  let image = null;
  let colors = null; // of each slot; the second half are edges
  let pictures = null;
  let asked = 0;
  let chosen = -1;

  // slot 0 is nothing, 1 the other lines, then the heaviest ones
  const slots = new Uint8Array(list(blocks.lines).length + 1).fill(1);
  heavy.slice(0, COLORS.length).forEach((line, k) => (slots[line + 1] = k + 2));
  const edges = slots.map((slot) => slot + SLOTS);
  let slotColors = null;
  let edgeColors = null;

  function recolor() {
    const own = ["--free", "--c8", ...COLORS].map((name) => rgba(css(name)));
    colors = Uint32Array.from([...own, ...own.map(darker)]);
    slotColors = Uint32Array.from(slots, (slot) => colors[slot]);
    edgeColors = Uint32Array.from(edges, (slot) => colors[slot]);
  }

  function resize(wanted) {
    const scale = devicePixelRatio || 1;
    width = Math.max(280, Math.round(wanted * scale));
    canvas.width = width;
    canvas.height = Math.round(HEIGHT * scale);
    image = new ImageData(width, canvas.height);
    pictures = picturesOf(lives, whole, width, canvas.height, slots, edges);
  }

  function line(g, x, color, dash) {
    g.strokeStyle = color;
    g.setLineDash(dash);
    g.lineWidth = 2 * (devicePixelRatio || 1);
    g.beginPath();
    g.moveTo(x, 0);
    g.lineTo(x, canvas.height);
    g.stroke();
  }

  function draw() {
    asked = 0;
    const g = canvas.getContext("2d");
    const pixels = new Uint32Array(image.data.buffer);
    canvas.painted = 0;
    if (!pictures.copy(view, pixels, colors)) {
      pixels.fill(colors[0]);
      canvas.painted = paint(lives, view, pixels, width, canvas.height, slotColors, edgeColors);
    }
    g.putImageData(image, 0, 0);
    const sx = width / (view.x1 - view.x0);
    if (isNumber(blocks.failed)) line(g, (blocks.failed - view.x0) * sx, css("--bad"), []);
    if (chosen >= 0) {
      const sy = canvas.height / (view.y1 - view.y0);
      g.strokeStyle = css("--ink");
      g.setLineDash([]);
      g.lineWidth = 2 * (devicePixelRatio || 1);
      const high = Math.max(2, lives.size[chosen] * sy);
      g.strokeRect(
        (lives.born[chosen] - view.x0) * sx,
        canvas.height - (lives.place[chosen] - view.y0) * sy - high,
        Math.max(2, (lives.died[chosen] - lives.born[chosen]) * sx),
        high,
      );
    }
    range.textContent =
      `${when(blocks, view.x0)} to ${when(blocks, Math.min(view.x1, blocks.events))}; ` +
      `${bytes((view.y1 - view.y0) * UNIT)} of ${bytes(blocks.height)}`;
  }
  const later = () => (asked = asked || requestAnimationFrame(draw));

  function zoom(axis, factor, middle) {
    const [from, to] = axis === "x" ? ["x0", "x1"] : ["y0", "y1"];
    const all = whole[to] - whole[from];
    const span = Math.max(Math.min(all, LEAST), Math.min(all, (view[to] - view[from]) * factor));
    const at = view[from] + (view[to] - view[from]) * middle;
    view[from] = Math.max(whole[from], Math.min(at - span * middle, whole[to] - span));
    view[to] = view[from] + span;
    later();
  }

  function move(axis, by) {
    const [from, to] = axis === "x" ? ["x0", "x1"] : ["y0", "y1"];
    const span = view[to] - view[from];
    view[from] = Math.max(whole[from], Math.min(view[from] + by * span, whole[to] - span));
    view[to] = view[from] + span;
    later();
  }

  function reset() {
    Object.assign(view, whole);
    chosen = -1;
    later();
  }

  function tell(e) {
    const frame = canvas.getBoundingClientRect();
    const x = view.x0 + ((e.clientX - frame.left) / frame.width) * (view.x1 - view.x0);
    const y = view.y1 - ((e.clientY - frame.top) / frame.height) * (view.y1 - view.y0);
    const found = lifeAt(lives, x, y);
    if (found !== chosen) {
      chosen = found;
      later();
    }
    said.textContent = found < 0 ? `Nothing is allocated here at ${when(blocks, x)}.` : lifeWords(blocks, lives, found);
  }

  // With the keys: the next block in sight, the largest first.
  function step() {
    const seen = [];
    for (let i = 0; i < lives.n; i++)
      if (
        lives.born[i] < view.x1 &&
        lives.died[i] > view.x0 &&
        lives.place[i] < view.y1 &&
        lives.place[i] + lives.size[i] > view.y0
      )
        seen.push(i);
    const area = (i) => lives.size[i] * (lives.died[i] - lives.born[i]);
    const best = chosen < 0 || !seen.includes(chosen) ? Infinity : area(chosen);
    let next = -1;
    for (const i of seen) {
      const after = area(i) < best || (area(i) === best && i > chosen);
      if (after && (next < 0 || area(i) > area(next))) next = i;
    }
    chosen = next;
    said.textContent = next < 0 ? "There are no more blocks in sight." : lifeWords(blocks, lives, next);
    later();
  }

  box.addEventListener("keydown", (e) => {
    const act = {
      ArrowLeft: () => move("x", -0.2),
      ArrowRight: () => move("x", 0.2),
      ArrowUp: () => move("y", 0.2),
      ArrowDown: () => move("y", -0.2),
      "+": () => zoom("x", 0.5, 0.5),
      "-": () => zoom("x", 2, 0.5),
      "*": () => zoom("y", 0.5, 0.5),
      "/": () => zoom("y", 2, 0.5),
      0: reset,
      Enter: step,
    }[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    act();
    e.preventDefault();
  });
  // the wheel zooms only here where the user has clicked, so that the page can be scrolled past it
  canvas.addEventListener(
    "wheel",
    (e) => {
      if (document.activeElement !== box && !e.ctrlKey) return;
      const frame = canvas.getBoundingClientRect();
      const factor = Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240)));
      if (e.shiftKey) zoom("y", factor, 1 - (e.clientY - frame.top) / frame.height);
      else zoom("x", factor, (e.clientX - frame.left) / frame.width);
      e.preventDefault();
    },
    { passive: false },
  );
  let held = null;
  canvas.addEventListener("pointerdown", (e) => (held = { x: e.clientX, y: e.clientY }));
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointerleave", () => (held = null));
  canvas.addEventListener("pointermove", (e) => {
    if (!held || !e.buttons) return tell(e);
    const frame = canvas.getBoundingClientRect();
    move("x", (held.x - e.clientX) / frame.width);
    move("y", (e.clientY - held.y) / frame.height);
    held = { x: e.clientX, y: e.clientY };
  });
  recolor();
  return {
    canvas,
    heavy,
    zoom,
    reset,
    // what the page does with all its charts
    chart: {
      root: canvas,
      redraw: () => {
        recolor();
        later();
      },
      setSize: ({ width: wanted }) => {
        resize(wanted);
        later();
      },
      destroy: () => cancelAnimationFrame(asked),
    },
    begin: (wanted) => {
      resize(wanted);
      draw();
      pictures.prepare();
    },
  };
}

function legendOf(blocks, heavy) {
  const rows = heavy.slice(0, COLORS.length);
  return el(
    "ul",
    { class: "legend" },
    rows.map((line, k) =>
      el(
        "li",
        {},
        el("span", { class: "swatch", css: { background: `var(${COLORS[k]})` } }),
        unbroken(list(blocks.lines)[line] || "no line known"),
      ),
    ),
    heavy.length > rows.length
      ? el(
          "li",
          {},
          el("span", { class: "swatch", css: { background: "var(--c8)" } }),
          many(heavy.length - rows.length, "other line"),
        )
      : null,
  );
}

// Null without events: then there is no panel.
export function blocksPanel(data, process, device, live) {
  const blocks = object(device.blocks);
  if (!isNumber(blocks.n) || blocks.n < 2 || !blocks.events) return null;
  const said = el(
    "div",
    { class: "said", role: "status" },
    "Point at a band, or press Enter, to see the size of a block and its line.",
  );
  const range = el("p", { class: "soft", "aria-hidden": "true" });
  const buttons = el("div", { class: "tools" });
  const legend = el("div", {});
  const rest = el("div", {});
  const box = el("div", {
    class: "chart blocks",
    tabindex: 0,
    role: "group",
    "aria-label":
      `${many(blocks.n, "block")} of PyTorch over time. Arrow keys move, plus and minus zoom in time, ` +
      "asterisk and slash in memory, 0 shows everything, Enter goes from block to block, the largest first.",
  });
  live.later(() => {
    livesOf(blocks).then(
      (lives) => {
        if (!box.isConnected) return;
        const made = timelineOf(blocks, lives, box, said, range);
        box.append(made.canvas);
        buttons.append(
          el("button", { type: "button", onclick: () => made.zoom("x", 0.5, 0.5) }, "Zoom in"),
          el("button", { type: "button", onclick: () => made.zoom("x", 2, 0.5) }, "Zoom out"),
          el("button", { type: "button", onclick: () => made.zoom("y", 0.5, 0.5) }, "Zoom into memory"),
          el("button", { type: "button", onclick: made.reset }, "Everything"),
          el("span", { class: "soft" }, "or click and use the wheel (with Shift: memory); drag to move"),
        );
        made.begin(box.clientWidth || 800);
        live.charts.push(made.chart);
        legend.append(legendOf(blocks, made.heavy));
        rest.append(lifeTable(blocks, lives));
        showMore(rest);
        box.dataset.ready = "yes";
      },
      (error) => clear(box).append(missing("The blocks could not be read: " + error.message)),
    );
  });
  return [
    el(
      "p",
      {},
      `${many(blocks.n, "block")} over ${many(blocks.events, "event")}. ` +
        "Each is a band from its allocation to its free, at its place in memory; " +
        "addresses that no block ever used are left out, and higher ones are further up.",
      isNumber(blocks.failed) ? " The red line is where memory ran out." : "",
    ),
    buttons,
    box,
    range,
    said,
    legend,
    blocks.left_out
      ? missing(
          `${many(blocks.left_out, "block")} that were small or short-lived are omitted` +
            (isNumber(blocks.part_left_out) ? `: ${percent(blocks.part_left_out, 1)} of all bytes times events.` : "."),
        )
      : null,
    rest,
  ];
}
