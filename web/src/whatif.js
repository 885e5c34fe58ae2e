// SPDX-License-Identifier: Apache-2.0
// What other settings would have changed: used and reserved memory, played back under each, and the request that fails.
import { captionAt, css, drawChart, hasCharts, optionsOf, restingAt, stepped } from "./chart.js";
import { breakable, el, missing, scroller, table } from "./dom.js";
import { bytes, count, isNumber, list, object, seconds } from "./format.js";
import { legendOf } from "./stack.js";

const COLORS = ["--ink", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];
const ROWS = 16; // of the table

function settingsOf(answers) {
  return answers.map((answer, i) => ({
    ...answer,
    label: answer.what_if || "as recorded",
    color: COLORS[i % COLORS.length],
    line: true,
    shown: true,
    allocated: list(answer.allocated),
    reserved: list(answer.reserved),
    failure: answer.failure ? object(answer.failure) : null,
    growth: answer.growth ? object(answer.growth) : null,
  }));
}

// --- words ---------------------------------------------------------------------------------------------------

function failureWords(failure) {
  if (!failure.request) return "CUDA itself or a library finds no memory";
  const who = failure.where || "a line that is not known";
  return `${who} asks for ${bytes(failure.request)}, with ${bytes(failure.free)} free`;
}

const growthWords = (g) =>
  g.fails_at ? `at this rate, memory runs out at about ${g.unit} ${g.fails_at}: ${bytes(g.bytes)} more in each` : "";

const MAYBE = { yes: "fits", no: "does not fit", likely: "likely fits", unlikely: "likely does not fit" };
const answerWords = (s) => MAYBE[s.words] || "may fit or not, by very little";

function summary(settings, ranOut) {
  const [own, ...others] = settings;
  const helps = others.filter((s) => s.fits).sort((a, b) => b.spare - a.spare)[0];
  const first = own.failure
    ? `As recorded it ${ranOut ? "ran out of memory" : answerWords(own)}: ${failureWords(own.failure)}.`
    : `As recorded it fits, with ${bytes(own.spare)} to spare.`;
  if (!others.length) return first;
  if (own.growth)
    return `${first} Every ${own.growth.unit} adds ${bytes(own.growth.bytes)}: a larger card only delays that.`;
  if (!helps) return `${first} It fits under none of the other settings.`;
  return own.failure || helps.spare > own.spare
    ? `${first} With ${helps.label} it ${answerWords(helps)}, with ${bytes(helps.spare)} to spare.`
    : `${first} No other setting leaves more.`;
}

// --- the chart -----------------------------------------------------------------------------------------------

const wide = (values, n) => Array.from({ length: n }, (_, i) => (i < values.length ? values[i] : null));
const lastOf = (values) => values[values.length - 1] || 0;
const wanted = (s) => lastOf(s.reserved) + (s.failure.request || 0);

const lineOf = (s, dash) => ({
  label: s.label,
  stroke: () => css(s.color),
  width: dash ? 1 : 2,
  dash,
  points: { show: false },
  paths: stepped(),
});

// Each amount of memory that there is for PyTorch, once.
function roomsOf(settings) {
  const rooms = new Map();
  for (const s of settings) if (isNumber(s.room) && !rooms.has(s.room)) rooms.set(s.room, s);
  return [...rooms.values()];
}

function rangeOf(settings) {
  const most = Math.max(1, ...settings.map((s) => (s.failure ? wanted(s) : Math.max(...s.reserved))));
  const rooms = roomsOf(settings).map((s) => s.room);
  return [0, Math.max(most, ...rooms.filter((room) => room < 2 * most)) * 1.1];
}

// The limit of each card, and where a request goes beyond it.
function limitsAndFailures(settings) {
  return {
    hooks: {
      draw: (u) => {
        const g = u.ctx;
        const px = devicePixelRatio;
        g.save();
        g.font = `${11 * px}px ${getComputedStyle(document.body).fontFamily}`;
        for (const s of roomsOf(settings)) drawRoom(u, g, px, s);
        for (const s of settings) if (s.failure && s.shown) drawFailure(u, g, px, s);
        g.restore();
      },
    },
  };
}

function drawRoom(u, g, px, s) {
  const y = u.valToPos(s.room, "y", true);
  if (s.room > u.scales.y.max) return;
  g.strokeStyle = g.fillStyle = css("--soft");
  g.lineWidth = px;
  g.setLineDash([6 * px, 4 * px]);
  g.beginPath();
  g.moveTo(u.bbox.left, y);
  g.lineTo(u.bbox.left + u.bbox.width, y);
  g.stroke();
  const whose = s.what_if ? ` (${s.label})` : "";
  const room = bytes(s.room);
  captionAt(u, y, [`room for PyTorch: ${room} of ${bytes(s.total)}${whose}`, `room: ${room}${whose}`, `room: ${room}`]);
}

function drawFailure(u, g, px, s) {
  const at = u.data[0][s.reserved.length - 1];
  const x = u.valToPos(at, "x", true);
  const y = Math.max(u.valToPos(wanted(s), "y", true), u.bbox.top + 5 * px);
  if (x < u.bbox.left - 1 || x > u.bbox.left + u.bbox.width + 1) return;
  const size = 4 * px;
  g.strokeStyle = css(s.color);
  g.lineWidth = px;
  g.setLineDash([2 * px, 2 * px]);
  g.beginPath();
  g.moveTo(x, u.valToPos(lastOf(s.reserved), "y", true));
  g.lineTo(x, y);
  g.stroke();
  g.strokeStyle = css("--bad");
  g.lineWidth = 2 * px;
  g.setLineDash([]);
  g.beginPath();
  g.moveTo(x - size, y - size);
  g.lineTo(x + size, y + size);
  g.moveTo(x + size, y - size);
  g.lineTo(x - size, y + size);
  g.stroke();
}

function chartOf(settings, what, box, buttons, live) {
  const n = list(what.us).length;
  const event = list(what.us).map((us, i) => 1 + i * what.each);
  const x = event.map((e) => e / 1e6); // as the axis of events has it
  const failed = settings.find((s) => s.failure);
  const marks = failed ? [{ x: x[Math.max(0, failed.reserved.length - 1)] }] : [];
  const hidden = x.map(() => null);
  const data = () => [
    x,
    ...settings.flatMap((s) => (s.shown ? [wide(s.reserved, n), wide(s.allocated, n)] : [hidden, hidden])),
  ];
  let chart = null;
  const legend = legendOf(settings, () =>
    chart.batch(() => {
      const { min, max } = chart.scales.x;
      chart.setData(data());
      chart.setScale("x", { min, max });
    }),
  );
  const say = (u) => {
    const idx = u.cursor.idx;
    const at = u.cursor.left < 0 || !isNumber(idx) ? restingAt(x, marks) : idx;
    legend.moment.textContent = `event ${count(event[at])}, ${seconds(what.us[at] / 1e6)} after the start`;
    for (const s of settings)
      s.said.textContent =
        at < s.reserved.length
          ? `${bytes(s.reserved[at])} reserved, ${bytes(s.allocated[at])} used`
          : "has run out of memory";
  };
  const options = {
    ...optionsOf({ timed: false, marks: [], total: null }),
    series: [{}, ...settings.flatMap((s) => [lineOf(s), lineOf(s, [3, 3])])],
    legend: { show: false },
    hooks: { ready: [say], setCursor: [say] },
  };
  options.scales.y.range = () => rangeOf(settings);
  options.plugins = [limitsAndFailures(settings)];
  drawChart({ box, buttons, live, marks, options, data, drawn: (made) => (chart = made) });
  return hasCharts ? legend.node : null;
}

// --- tables --------------------------------------------------------------------------------------------------

function answersTable(settings) {
  const most = (values) => ({ n: bytes(values.reduce((a, b) => Math.max(a, b), 0)) });
  return scroller(
    "Whether it fits under each setting",
    table(
      "Whether it fits under each setting",
      [
        "setting",
        "fits",
        { n: "memory" },
        { n: "most reserved" },
        { n: "most used" },
        { n: "to spare" },
        "fails where",
      ],
      settings.map((s) => [
        breakable(s.label),
        s.words,
        { n: bytes(s.total) },
        most(s.reserved),
        most(s.allocated),
        { n: s.failure ? "\u2013" : bytes(s.spare) },
        s.failure ? failureWords(s.failure) : s.growth ? growthWords(s.growth) : "",
      ]),
    ),
    "tall",
  );
}

// Some of the intervals, evenly spaced, and the last of each setting.
function overTimeTable(settings, what) {
  const n = list(what.us).length;
  const wantedRows = new Set(settings.map((s) => s.reserved.length - 1));
  for (let i = 0; i < ROWS; i++) wantedRows.add(Math.round((i * (n - 1)) / (ROWS - 1)));
  const rows = [...wantedRows].filter((i) => i >= 0 && i < n).sort((a, b) => a - b);
  const cell = (s, i) =>
    i < s.reserved.length
      ? `${bytes(s.reserved[i])}, ${bytes(s.allocated[i])}${s.failure && i === s.reserved.length - 1 ? " (fails)" : ""}`
      : "\u2013";
  return el(
    "details",
    {},
    el("summary", {}, "The same as a table"),
    scroller(
      "Reserved and used memory over time as a table",
      table(
        "Reserved and used memory over time",
        ["from event", { n: "time" }, ...settings.map((s) => ({ n: `${s.label}: reserved, used` }))],
        rows.map((i) => [
          count(1 + i * what.each),
          { n: seconds(what.us[i] / 1e6) },
          ...settings.map((s) => ({ n: cell(s, i) })),
        ]),
      ),
    ),
  );
}

// Null without a memory trace: then there is nothing to play back, and no panel.
export function whatIfPanel(data, process, device, live) {
  const what = object(device.what_if);
  const settings = settingsOf(list(what.answers));
  if (!settings.length || !list(what.us).length) return null;
  const told = summary(settings, what.ran_out);
  const box = el("div", {
    class: "chart",
    tabindex: 0,
    role: "img",
    "aria-label":
      "Reserved and used memory under each setting. " +
      told +
      " Arrow keys move, plus and minus zoom, 0 shows everything.",
  });
  const buttons = el("div", { class: "tools" });
  const legend = chartOf(settings, what, box, buttons, live);
  const doubts = [...new Set(settings.flatMap((s) => list(s.doubts)))];
  return [
    el("p", {}, told),
    answersTable(settings),
    buttons,
    box,
    legend,
    el(
      "p",
      { class: "soft" },
      "Each of the program's allocations and frees was played back to a model of PyTorch's allocator. " +
        "Solid lines are reserved memory, dashed lines what tensors use; a cross is the request that fails, " +
        `as high as it would reach. ${what.each > 1 ? `A step is the most of ${count(what.each)} events.` : ""}`,
    ),
    doubts.map((doubt) => missing(`Not exact: ${doubt}.`)),
    overTimeTable(settings, what),
  ];
}
