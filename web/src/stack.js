// SPDX-License-Identifier: Apache-2.0
// Memory over time, stacked by purpose; the finer totals are lines on top.
import { css, drawChart, hasCharts, optionsOf, restingAt, stepped } from "./chart.js";
import { breakable, el, missing, scroller, table } from "./dom.js";
import { bytes, list, object, seconds } from "./format.js";
import { KIND_COLORS } from "./kinds.js";

const ROWS = 16; // of the table
const letter = (i) => String.fromCharCode(65 + (i % 26));

// From the bottom up.
function layersOf(kinds, words) {
  const tensors = object(kinds.tensors);
  const known = Object.keys(KIND_COLORS).filter((id) => list(tensors[id]).some((n) => n > 0));
  const one = known.length === 1 && known[0] === "other";
  const named = known.map((id) =>
    one
      ? { label: "tensors", color: "--tensors", values: tensors[id], tensors: true }
      : { label: object(words.kinds)[id] || id, color: KIND_COLORS[id], values: tensors[id], tensors: true },
  );
  const more = [
    { label: "tensors of unknown purpose", color: "--free", values: kinds.untold, open: true, tensors: true },
    { label: "PyTorch's cache", color: "--cache2", values: kinds.cache, open: true },
    { label: "other allocations", color: "--c9", values: kinds.other_libraries },
  ];
  return [...named, ...more]
    .filter((layer) => list(layer.values).some((n) => n > 0))
    .map((layer, i) => ({ ...layer, letter: letter(i), shown: true }));
}

// Each has its own times. A value counts until the next one of its kind.
function timesOf(line, kinds, marks) {
  const all = [...list(line.us), ...list(kinds.us)].map((us) => us / 1e6);
  if (marks.length) all.push(marks[marks.length - 1].x);
  return [...new Set(all)].sort((a, b) => a - b);
}

function spread(time, us, values) {
  let at = -1;
  return time.map((t) => {
    while (at + 1 < us.length && us[at + 1] / 1e6 <= t) at++;
    return at < 0 ? null : values[at] || 0;
  });
}

// Samples have the largest values until the next one; at the moment of the ledger the exact ones are known.
function withLedger(line, kinds) {
  const at = kinds.ledger;
  const us = list(kinds.us)[at];
  const before = list(line.us).filter((t) => t < us).length;
  const sum = Object.values(object(kinds.tensors)).reduce((a, values) => a + values[at], kinds.untold[at]);
  const put = (values, value) => [...list(values).slice(0, before), value, ...list(values).slice(before)];
  return {
    us: put(line.us, us),
    allocated: put(line.allocated, sum),
    reserved: put(line.reserved, sum + kinds.cache[at]),
  };
}

// Hidden layers leave no gap. The top layer comes first, so that those below it are drawn over it.
function stackUp(layers) {
  let below = null;
  const tops = layers.map((layer) => {
    if (!layer.shown) return layer.wide.map(() => null);
    below = layer.wide.map((n, i) => (n === null ? null : n + (below ? below[i] || 0 : 0)));
    return below;
  });
  return tops.reverse();
}

function areaSeries(layer) {
  return {
    label: layer.label,
    stroke: () => css("--panel"),
    fill: () => css(layer.color),
    width: 1,
    points: { show: false },
    paths: stepped(),
  };
}

function lineSeries(line) {
  return {
    label: line.label,
    stroke: () => css(line.color),
    width: 1,
    dash: line.dash,
    points: { show: false },
    paths: stepped(),
  };
}

// A layer's letter goes in the middle of where it is thick.
function placeOf(u, layer) {
  const { min, max } = u.scales.x;
  const time = u.data[0];
  const end = (i) => (i + 1 < time.length ? time[i + 1] : time[i]);
  const seen = time.map((t, i) => i).filter((i) => layer.wide[i] > 0 && end(i) > min && time[i] < max);
  const most = seen.reduce((a, i) => Math.max(a, layer.wide[i]), 0);
  const thick = seen.filter((i) => layer.wide[i] >= most * 0.6);
  const at = thick[thick.length >> 1];
  return at === undefined ? null : { at, x: (Math.max(time[at], min) + Math.min(end(at), max)) / 2 };
}

function letters(layers) {
  const marks = [];
  return {
    hooks: {
      drawSeries: (u, number) => {
        const layer = layers[layers.length - number];
        const place = layer && layer.shown && placeOf(u, layer);
        if (!place) return;
        const top = u.data[number][place.at];
        const high = u.valToPos(top, "y", true);
        const low = u.valToPos(top - layer.wide[place.at], "y", true);
        if (low - high >= 14 * devicePixelRatio)
          marks.push({
            x: u.valToPos(place.x, "x", true),
            y: (low + high) / 2,
            text: layer.letter,
            ink: layer.open ? "--ink" : "--panel",
          });
      },
      drawClear: () => (marks.length = 0),
      draw: (u) => {
        const g = u.ctx;
        g.save();
        g.font = `700 ${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
        g.textAlign = "center";
        g.textBaseline = "middle";
        for (const mark of marks) {
          g.fillStyle = css(mark.ink);
          g.fillText(
            mark.text,
            Math.min(
              Math.max(mark.x, u.bbox.left + 7 * devicePixelRatio),
              u.bbox.left + u.bbox.width - 7 * devicePixelRatio,
            ),
            mark.y,
          );
        }
        g.restore();
      },
    },
  };
}

// What tensors were for is known only for each interval's peak. Where PyTorch had allocated less, it is pale.
function veil(layers, lines) {
  return {
    hooks: {
      drawSeries: (u, number) => {
        if (number !== layers.length || layers.some((layer) => layer.tensors && !layer.shown) || !lines.length) return;
        const g = u.ctx;
        const time = u.data[0];
        const x = (t) =>
          Math.round(Math.min(Math.max(u.valToPos(t, "x", true), u.bbox.left), u.bbox.left + u.bbox.width));
        g.save();
        g.fillStyle = css("--panel");
        g.globalAlpha = 0.6;
        time.forEach((t, i) => {
          const top = layers.reduce((sum, layer) => sum + (layer.tensors ? layer.wide[i] || 0 : 0), 0);
          const given = lines[0].wide[i];
          if (given === null || given >= top || i + 1 >= time.length) return;
          const high = Math.max(u.valToPos(top, "y", true), u.bbox.top);
          g.fillRect(
            x(t),
            high,
            x(time[i + 1]) - x(t),
            Math.min(u.valToPos(given, "y", true), u.bbox.top + u.bbox.height) - high,
          );
        });
        g.restore();
      },
    },
  };
}

// --- legend and table ----------------------------------------------------------------------------------------

export function legendOf(entries, toggle) {
  const moment = el("span", { class: "soft" });
  const buttons = entries.map((entry) => {
    entry.said = el("span", { class: "value" });
    const swatch = entry.line
      ? el("span", {
          class: "swatch line" + (entry.dash ? " dashed" : ""),
          css: { "border-top-color": `var(${entry.color})` },
        })
      : el(
          "span",
          { class: "swatch" + (entry.open ? " open" : ""), css: { background: `var(${entry.color})` } },
          entry.letter,
        );
    const button = el(
      "button",
      {
        type: "button",
        "aria-pressed": "true",
        onclick: () => {
          entry.shown = !entry.shown;
          button.setAttribute("aria-pressed", String(entry.shown));
          toggle();
        },
      },
      swatch,
      breakable(entry.label),
      " ",
      entry.said,
    );
    return el("li", {}, button);
  });
  return {
    node: el(
      "div",
      { class: "stack-legend" },
      el("p", {}, moment),
      el("ul", { "aria-label": "Parts of the chart; press one to hide or show it" }, buttons),
    ),
    moment,
  };
}

// Some of the columns, evenly spaced, and those that matter: the largest and the ledger's.
function tableOf(kinds, layers, failed) {
  const us = list(kinds.us);
  const sums = us.map((t, i) => layers.reduce((a, layer) => a + (layer.values[i] || 0), 0));
  const wanted = new Set([kinds.ledger, sums.indexOf(Math.max(...sums))]);
  for (let i = 0; i < ROWS; i++) wanted.add(Math.round((i * (us.length - 1)) / (ROWS - 1)));
  const rows = [...wanted].filter((i) => i >= 0 && i < us.length).sort((a, b) => a - b);
  const upwards = [...layers].reverse();
  return el(
    "details",
    {},
    el("summary", {}, "The same as a table"),
    scroller(
      "Memory over time as a table",
      table(
        "Memory over time",
        ["from", ...upwards.map((layer) => ({ n: layer.label })), { n: "total" }],
        rows.map((i) => [
          seconds(us[i] / 1e6) + (i !== kinds.ledger ? "" : failed ? " (failure)" : " (end)"),
          ...upwards.map((layer) => ({ n: bytes(layer.values[i] || 0) })),
          { n: bytes(sums[i]) },
        ]),
      ),
    ),
  );
}

export function kindsChart({ line, kinds, failed, failures, total, words, box, buttons, live }) {
  const layers = layersOf(kinds, words);
  const time = timesOf(line, kinds, failures);
  for (const layer of layers) layer.wide = spread(time, kinds.us, layer.values);
  const exact = withLedger(line, kinds);
  const lines = [
    { label: "allocated by PyTorch", color: "--ink", values: exact.allocated },
    { label: "reserved by PyTorch", color: "--soft", dash: [5, 3], values: exact.reserved },
  ]
    .filter((l) => list(l.values).some((n) => n > 0))
    .map((l) => ({ ...l, line: true, shown: true, wide: spread(time, exact.us, l.values) }));
  let chart = null;
  const data = () => [time, ...stackUp(layers), ...lines.map((l) => (l.shown ? l.wide : l.wide.map(() => null)))];
  const entries = [...lines, ...[...layers].reverse()];
  // the byte scale adapts, the time scale stays
  const legend = legendOf(entries, () =>
    chart.batch(() => {
      const { min, max } = chart.scales.x;
      chart.setData(data());
      chart.setScale("x", { min, max });
    }),
  );
  const say = (u) => {
    const at =
      u.cursor.left < 0 || u.cursor.idx === null || u.cursor.idx === undefined
        ? restingAt(time, failures)
        : u.cursor.idx;
    legend.moment.textContent = `${seconds(time[at])} after the start`;
    for (const entry of entries) entry.said.textContent = entry.wide[at] === null ? "\u2013" : bytes(entry.wide[at]);
  };
  const options = {
    ...optionsOf({ timed: true, marks: failures, total }),
    series: [{}, ...[...layers].reverse().map(areaSeries), ...lines.map(lineSeries)],
    legend: { show: false },
    hooks: { ready: [say], setCursor: [say] },
  };
  options.plugins.push(veil(layers, lines), letters(layers));
  drawChart({ box, buttons, live, marks: failures, options, data, drawn: (made) => (chart = made) });
  return [
    box,
    hasCharts ? legend.node : null,
    el(
      "p",
      { class: "soft" },
      `Each step shows what was held when memory use was highest in its interval` +
        `${list(kinds.us).length > 1 ? "" : "; there is one"}. The lines are finer: the largest values of ` +
        `about two thousand samples. Above the line of what PyTorch had allocated, tensors are pale.`,
    ),
    list(kinds.untold).some((n) => n > 0)
      ? missing("The purpose of some tensors is not known: there was no room for the history of every line.")
      : null,
    tableOf(kinds, layers, failed),
  ];
}
