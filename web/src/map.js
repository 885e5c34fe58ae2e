// SPDX-License-Identifier: Apache-2.0
// The map of PyTorch's segments: one row each, every block in its place, and what it is.
import { clear, el, missing, svg, unique } from "./dom.js";
import { bytes, count, isNumber, list, many, object, percent } from "./format.js";
import { KIND_COLORS } from "./kinds.js";

const WIDTH = 1000;
const SHOWN = 16;

// If kinds say nothing (snapshots, or none is known), the biggest lines get the colors.
function coloring(map, segments) {
  const kinds = list(map.kinds);
  const used = new Set(segments.flatMap((s) => list(s.runs).map((r) => kinds[r[4]])));
  if ([...used].some((kind) => kind && kind !== "other"))
    return { of: (run) => KIND_COLORS[kinds[run[4]]] || "--c8", used, lines: null };
  const sums = new Map();
  for (const s of segments) for (const run of list(s.runs)) sums.set(run[5], (sums.get(run[5]) || 0) + run[2]);
  const top = [...sums]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 8)
    .map(([line]) => line);
  return {
    of: (run) => (top.includes(run[5]) ? "--c" + top.indexOf(run[5]) : "--c8"),
    used: null,
    lines: top,
    rest: sums.size > top.length,
  };
}

function legend(colors, words, lines) {
  const item = (color, text, open) =>
    el("li", {}, el("span", { class: "swatch" + (open ? " open" : ""), css: { background: `var(${color})` } }), text);
  const items = colors.used
    ? Object.entries(KIND_COLORS)
        .filter(([kind]) => colors.used.has(kind))
        .map(([kind, color]) => item(color, object(words.kinds)[kind] || kind))
    : colors.lines
        .map((line, i) => item("--c" + i, lines[line] || "no line known"))
        .concat(colors.rest ? [item("--c8", "other lines")] : []);
  return el("ul", { class: "legend", "aria-label": "Colors" }, items, item("--free", "free, cached by PyTorch", true));
}

function rowOf(segment, draw) {
  const runs = list(segment.runs).filter((r) => Array.isArray(r) && isNumber(r[0]) && isNumber(r[1]));
  const used = segment.size - segment.free;
  const label =
    `${segment.like > 1 ? count(segment.like) + " segments like this: " : ""}` +
    `Segment of ${bytes(segment.size)} at ${segment.address}: ${percent(used, segment.size)} in use by ` +
    `${many(segment.blocks, "block")}, largest free piece ${bytes(segment.largest)}`;
  const strip = svg("svg", {
    viewBox: `0 0 ${WIDTH} 18`,
    preserveAspectRatio: "none",
    tabindex: 0,
    role: "img",
    "aria-label": label + ". Arrow keys move from block to block.",
  });
  const rects = runs.map((run) => {
    const rect = svg("rect", {
      x: (run[0] / segment.size) * WIDTH,
      y: 0,
      width: Math.max(0.7, (run[1] / segment.size) * WIDTH),
      height: 18,
      fill: `var(${draw.colors.of(run)})`,
      "fill-opacity": run[2] < run[1] ? Math.max(0.35, run[2] / run[1]) : 1,
    });
    strip.append(rect);
    return rect;
  });
  let at = -1;
  const pick = (i) => {
    at = i;
    draw.pick(rects[i], segment, runs[i]);
  };
  strip.addEventListener("mousemove", (e) => {
    const i = rects.indexOf(e.target);
    if (i >= 0 && i !== at) pick(i);
  });
  strip.addEventListener("click", (e) => rects.includes(e.target) && pick(rects.indexOf(e.target)));
  strip.addEventListener("keydown", (e) => {
    const to = {
      ArrowRight: Math.min(at + 1, rects.length - 1),
      ArrowLeft: Math.max(at - 1, 0),
      Home: 0,
      End: rects.length - 1,
    }[e.key];
    if (to === undefined || !rects.length) return;
    pick(to);
    e.preventDefault();
  });
  return el(
    "div",
    { class: "row" },
    el(
      "span",
      { class: "n" },
      segment.like > 1 ? el("b", {}, count(segment.like) + " \u00d7 ") : "",
      bytes(segment.size),
    ),
    strip,
    el(
      "span",
      { class: "soft" },
      `${percent(segment.free, segment.size) || "0 %"} free${runs.length ? ", " + draw.mostly(runs) : ""}`,
    ),
  );
}

// Why free memory did not help.
function pieces(map, all, request) {
  const largest = all.reduce((a, s) => Math.max(a, s.largest || 0), 0);
  if (map.at !== "oom" || map.left_out || !isNumber(request) || largest >= request) return null;
  return el("p", {}, `The largest free piece is ${bytes(largest)}; the request was ${bytes(request)} in one piece.`);
}

export function mapPanel(data, process, device) {
  const map = object(device.map);
  const all = list(map.segments).filter((s) => s && isNumber(s.size) && s.size > 0);
  if (!all.length)
    return missing(
      data.input.kind === "dump"
        ? "A core dump has no data on memory; a recording of 'cuwhy run' does."
        : "PyTorch had no segments then: its allocator was not used, or was not recorded.",
    );
  const lines = list(object(process.detail).lines);
  const words = object(device.words);
  const colors = coloring(map, all);
  const said = el(
    "div",
    { class: "said", role: "status", id: unique("said") },
    "Point at a block, or move through a segment with the arrow keys, to see what it is.",
  );
  let on = null;
  const draw = {
    colors,
    mostly: (runs) => {
      const run = runs.reduce((a, r) => (r[2] > a[2] ? r : a));
      return (
        (colors.used && list(map.kinds)[run[4]]) ||
        (lines[run[5]] || "no line known").replace(/^.*\//, "").replace(/ in .*$/, "")
      );
    },
    pick: (rect, segment, run) => {
      if (on) on.classList.remove("on");
      on = rect;
      on.classList.add("on");
      const kind = list(map.kinds)[run[4]];
      clear(said).append(
        run[3] === 1
          ? `A block of ${bytes(run[2])}`
          : `${count(run[3])} blocks, ${bytes(run[2])} in ${bytes(run[1])}; the largest`,
        ` at offset ${bytes(run[0])} of ` +
          `${segment.like > 1 ? `each of ${count(segment.like)} segments, the first at` : "the segment at"} ` +
          `${segment.address}`,
        el("br"),
        el("span", { class: "place" }, lines[run[5]] || "no line known"),
        kind ? `: ${object(words.kinds)[kind] || kind}` : "",
      );
    },
  };
  const orders = {
    size: (a, b) => b.size - a.size,
    "free bytes": (a, b) => b.free - a.free,
    address: (a, b) => a.address.length - b.address.length || (a.address < b.address ? -1 : 1),
  };
  const rows = el("div", { class: "map" });
  const state = { order: "size", all: all.length <= SHOWN + 4 };
  const more = el(
    "button",
    {
      type: "button",
      onclick: () => {
        state.all = true;
        fill();
        rows.querySelectorAll("svg")[SHOWN].focus();
      },
    },
    `Show all ${count(all.length)} rows`,
  );
  const fill = () => {
    const sorted = [...all].sort(orders[state.order]);
    clear(rows).append(...(state.all ? sorted : sorted.slice(0, SHOWN)).map((s) => rowOf(s, draw)));
    more.hidden = state.all;
  };
  fill();
  const free = all.reduce((a, s) => a + s.free * (s.like || 1), 0) + (map.left_out_free || 0);
  const size = all.reduce((a, s) => a + s.size * (s.like || 1), 0) + (map.left_out || 0);
  return [
    el(
      "p",
      { class: "soft" },
      `${map.at === "oom" ? "When memory ran out" : "At the end"}: ${many(map.count, "segment")}, ${bytes(size)}` +
        (isNumber(map.left_out_free) || !map.left_out
          ? `, of which ${bytes(free)} (${percent(free, size)}) are free but cached by PyTorch`
          : "") +
        `. Each row is one segment at the full width, whatever its size; those that look the same are drawn once.`,
    ),
    pieces(map, all, object(object(data.verdict).memory).request),
    el(
      "div",
      { class: "tools" },
      el(
        "label",
        {},
        "Order by ",
        el(
          "select",
          {
            onchange: (e) => {
              state.order = e.target.value;
              fill();
            },
          },
          Object.keys(orders).map((name) => el("option", {}, name)),
        ),
      ),
      more,
    ),
    legend(colors, words, lines),
    rows,
    said,
    map.left_out
      ? missing(
          `${many(map.n_left_out, "more segment")} with ${bytes(map.left_out)}` +
            `${isNumber(map.left_out_free) ? ` (${bytes(map.left_out_free)} free)` : ""} are left out.`,
        )
      : null,
  ];
}
