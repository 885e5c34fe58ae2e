// SPDX-License-Identifier: Apache-2.0
// What the charts of memory over time share: failure marks, the size of the card, axes, zoom and keys.
import uPlot from "uplot";
import { el, missing } from "./dom.js";
import { bytes, count, isNumber, list, seconds, times } from "./format.js";

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const hasCharts = uPlot !== null;
export const stepped = () => hasCharts && uPlot.paths.stepped({ align: 1 });

// Draws a chart into the box as soon as the page is laid out. Without uPlot the tables around it have to do.
export function drawChart({ box, buttons, live, marks, options, data, drawn }) {
  if (!hasCharts) {
    box.removeAttribute("tabindex");
    box.append(missing("There is no chart here: this cuwhy was built without uPlot, which draws them."));
    return;
  }
  live.later(() => {
    options.width = Math.max(280, box.clientWidth || 800);
    const chart = new uPlot(options, data(), box);
    live.charts.push(chart);
    controls(chart, box, buttons, marks);
    if (drawn) drawn(chart);
  });
}

// Times at which the program failed, out of memory or otherwise.
export function marksOf(failures, device) {
  return list(failures.list)
    .filter((f) => isNumber(f.us) && (f.device === device || f.device === null || f.device === undefined))
    .map((f) => ({ x: f.us / 1e6, code: f.code, text: f.source + (f.name ? `: ${f.name}` : "") }));
}

export function failureLine(marks, total) {
  return {
    hooks: {
      draw: (u) => {
        const g = u.ctx;
        drawTotal(u, total);
        const last = marks[marks.length - 1];
        g.save();
        g.strokeStyle = g.fillStyle = css("--bad");
        g.font = `600 ${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
        for (const mark of marks) {
          const x = u.valToPos(mark.x, "x", true);
          if (x < u.bbox.left || x > u.bbox.left + u.bbox.width + 1) continue;
          g.lineWidth = (mark === last ? 1.6 : 0.8) * devicePixelRatio;
          g.setLineDash(mark === last ? [] : [3 * devicePixelRatio, 3 * devicePixelRatio]);
          g.beginPath();
          g.moveTo(x, u.bbox.top);
          g.lineTo(x, u.bbox.top + u.bbox.height);
          if (mark === last) {
            g.save();
            g.strokeStyle = css("--panel");
            g.lineWidth *= 3;
            g.stroke();
            g.restore();
          }
          g.stroke();
          if (mark === last) {
            const right = x > u.bbox.left + u.bbox.width / 2;
            g.textAlign = right ? "right" : "left";
            g.textBaseline = "bottom";
            g.fillText("failure", x + (right ? 3 : -3) * devicePixelRatio, u.bbox.top - 3 * devicePixelRatio);
          }
        }
        g.restore();
      },
    },
  };
}

// Words above a line of the chart: the longest that fit, readable on top of other lines.
export function captionAt(u, y, choices) {
  const g = u.ctx;
  const px = devicePixelRatio;
  g.save();
  g.font = `${11 * px}px ${getComputedStyle(document.body).fontFamily}`;
  g.textAlign = "left";
  g.textBaseline = "bottom";
  const fits = (words) => g.measureText(words).width <= u.bbox.width - 10 * px;
  const words = choices.find(fits) || choices[choices.length - 1];
  g.setLineDash([]);
  g.lineJoin = "round";
  g.lineWidth = 4 * px;
  g.strokeStyle = css("--panel");
  g.strokeText(words, u.bbox.left + 5 * px, y - 2 * px);
  g.fillStyle = css("--soft");
  g.fillText(words, u.bbox.left + 5 * px, y - 2 * px);
  g.restore();
}

// The size of the card, where the scale reaches it.
function drawTotal(u, total) {
  if (!(total > 0) || total > u.scales.y.max) return;
  const g = u.ctx;
  const y = u.valToPos(total, "y", true);
  g.save();
  g.strokeStyle = g.fillStyle = css("--soft");
  g.lineWidth = devicePixelRatio;
  g.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  g.beginPath();
  g.moveTo(u.bbox.left, y);
  g.lineTo(u.bbox.left + u.bbox.width, y);
  g.stroke();
  captionAt(u, y, [`the card: ${bytes(total)}`]);
  g.restore();
}

function zoomBy(u, factor, shift) {
  const { min, max } = u.scales.x;
  const first = u.data[0][0];
  const last = u.data[0][u.data[0].length - 1];
  const span = Math.min((max - min) * factor, last - first);
  const middle = (min + max) / 2 + shift * (max - min);
  const from = Math.max(first, Math.min(middle - span / 2, last - span));
  u.setScale("x", { min: from, max: from + span });
}

const reset = (u) => u.setScale("x", { min: u.data[0][0], max: u.data[0][u.data[0].length - 1] });

export function axes(timed) {
  const font = "11px " + getComputedStyle(document.body).fontFamily;
  const common = {
    stroke: () => css("--soft"),
    font,
    grid: { stroke: () => css("--rule"), width: 1 },
    ticks: { stroke: () => css("--rule"), width: 1 },
  };
  const incrs = [];
  for (let p = 0; p < 60; p++) incrs.push(2 ** p);
  const events = []; // there is no half of an event; the scale counts them in millions
  for (let p = 1e-6; p < 1e9; p *= 10) events.push(p, 2 * p, 5 * p);
  return [
    {
      ...common,
      ...(timed ? {} : { incrs: events }),
      values: (u, at, i, space, step) => (timed ? times(at, step) : at.map((v) => count(Math.round(v * 1e6)))),
      space: 80,
    },
    {
      ...common,
      incrs,
      size: 74,
      values: (u, at) => at.map((v) => (v ? bytes(v).replace(".00", "").replace(".0 ", " ") : "0")),
      space: 34,
    },
  ];
}

export const timeWords = (timed, v) => (timed ? seconds(v) : count(v * 1e6));
export const rangeOf = (total) => (u, min, max) => [
  0,
  (total > 0 && max > total / 2 ? Math.max(max, total) * 1.04 : Math.max(max, 1)) * 1.06,
];

// Options common to all charts; `width` is known once the page is laid out.
export function optionsOf({ timed, marks, total }) {
  return {
    width: 800,
    height: 260,
    scales: { x: { time: false }, y: { range: rangeOf(total) } },
    axes: axes(timed),
    padding: [18, 16, 0, 0],
    cursor: { y: false, drag: { x: true, y: false, dist: 5 }, points: { show: false } },
    plugins: [failureLine(marks, total)],
  };
}

// Keys on the chart, and buttons that do the same.
function controls(chart, box, buttons, marks) {
  box.addEventListener("keydown", (e) => {
    const act = {
      ArrowLeft: () => zoomBy(chart, 1, -0.2),
      ArrowRight: () => zoomBy(chart, 1, 0.2),
      "+": () => zoomBy(chart, 0.5, 0),
      "=": () => zoomBy(chart, 0.5, 0),
      "-": () => zoomBy(chart, 2, 0),
      0: () => reset(chart),
    }[e.key];
    if (!act || e.target !== box) return;
    act();
    e.preventDefault();
  });
  const time = chart.data[0];
  const last = marks.length ? marks[marks.length - 1].x : 0;
  buttons.append(
    el("button", { type: "button", onclick: () => zoomBy(chart, 0.5, 0) }, "Zoom in"),
    el("button", { type: "button", onclick: () => zoomBy(chart, 2, 0) }, "Zoom out"),
    el("button", { type: "button", onclick: () => reset(chart) }, "Whole run"),
    marks.length
      ? el(
          "button",
          {
            type: "button",
            onclick: () =>
              chart.setScale("x", {
                min: Math.max(time[0], last - (time[time.length - 1] - time[0]) / 20),
                max: time[time.length - 1],
              }),
          },
          "Before the failure",
        )
      : "",
    el("span", { class: "soft" }, "or drag to select a range"),
  );
}

// Until the user points at the chart, the legend shows the moment that matters.
export function restingAt(time, marks) {
  const after = marks.length ? time.findIndex((t) => t > marks[marks.length - 1].x) : -1;
  return after > 0 ? after - 1 : time.length - 1;
}
