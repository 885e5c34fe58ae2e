// SPDX-License-Identifier: Apache-2.0
// Memory over time (uPlot), the ledger as a bar that adds up, and memory by line and by module.
import { clear, el, missing, scroller, unbroken } from "./dom.js";
import { css, drawChart, marksOf, optionsOf, restingAt, stepped, timeWords } from "./chart.js";
import { KIND_COLORS } from "./kinds.js";
import { bytes, capital, count, isNumber, list, many, moment, object, percent, seconds } from "./format.js";
import { kindsChart } from "./stack.js";

const NOT_IN_DUMP = "A core dump has no data on memory; a recording of 'cuwhy run' does.";

// --- over time -----------------------------------------------------------------------------------------------

function columnsOf(line, marks) {
  const n = list(line.us).length;
  const time = [];
  const tensors = [];
  const cache = [];
  const other = [];
  for (let i = 0; i < n; i++) {
    const allocated = line.allocated[i] || 0;
    const reserved = Math.max(line.reserved[i] || 0, allocated);
    time.push(line.us[i] / 1e6);
    tensors.push(allocated);
    cache.push(reserved);
    if (line.driver) other.push(Math.max(line.driver[i] || 0, reserved));
  }
  // a sample counts until the next one, the last one until the failure
  const last = marks.length ? marks[marks.length - 1].x : 0;
  if (n && last > time[n - 1]) {
    time.push(last);
    for (const column of [tensors, cache, other]) if (column.length) column.push(column[column.length - 1]);
  }
  return { time, tensors, cache, other };
}

function series(label, color, below) {
  return {
    label,
    stroke: () => css(color),
    fill: () => css(color) + "c0",
    width: 1,
    points: { show: false },
    paths: stepped(),
    value: (u, v, s, i) =>
      i === null || v === null ? "\u2013" : bytes(v - (below === null ? 0 : u.data[below][i] || 0)),
  };
}

function summary(line, marks, total) {
  const most = list(line.allocated).reduce((a, b) => Math.max(a, b), 0);
  const at = list(line.allocated).indexOf(most);
  const driver = list(line.driver).reduce((a, b) => Math.max(a, b), 0);
  const what =
    most || !driver
      ? `Tensors held at most ${bytes(most)}, ${seconds((line.us[at] || 0) / 1e6)} after the start`
      : `PyTorch's allocator was not used; the driver had allocated at most ${bytes(driver)}`;
  // one failure is noticed several times: by the driver, by PyTorch, by Python
  const once = marks.length && marks[marks.length - 1].x - marks[0].x < 1;
  return (
    what +
    (total ? `; the device has ${bytes(total)}` : "") +
    (marks.length ? `; the ${once ? "" : "last "}failure came after ${seconds(marks[marks.length - 1].x)}.` : ".")
  );
}

// Tensors, cache and the rest: all that a snapshot, or a recording without epochs, has.
function totalsChart(line, marks, total, timed, box, buttons, live) {
  const { time, tensors, cache, other } = columnsOf(line, marks);
  const stacked = other.length ? [other, cache, tensors] : [cache, tensors];
  const kinds = [
    ["other allocations", "--libs", 2],
    ["PyTorch's cache", "--cache", 3],
    ["tensors", "--tensors", null],
  ]
    .slice(other.length ? 0 : 1)
    .map((k, i) => (other.length || k[2] === null ? k : [k[0], k[1], 2]));
  const rest = (u) => u.cursor.left < 0 && u.setLegend({ idx: restingAt(time, marks) }, false);
  const options = {
    ...optionsOf({ timed, marks, total }),
    series: [
      { label: timed ? "time" : "event", value: (u, v) => (v === null ? "\u2013" : timeWords(timed, v)) },
      ...kinds.map(([label, color, below]) => series(label, color, below)),
    ],
    legend: { live: true, markers: { fill: (u, i) => css(kinds[i - 1] ? kinds[i - 1][1] : "--soft") } },
    hooks: { ready: [rest], setCursor: [rest] },
  };
  drawChart({ box, buttons, live, marks, options, data: () => [time, ...stacked] });
}

export function timelinePanel(data, process, device, live) {
  const line = object(device.timeline);
  if (list(line.us).length < 2)
    return missing(
      data.input.kind === "dump"
        ? NOT_IN_DUMP
        : device.device === undefined
          ? "No GPU memory was used, or none of it was recorded."
          : list(line.us).length === 1
            ? "There is a single sample for this device: memory was allocated once."
            : "Memory over time was not recorded for this device" +
              (data.input.kind === "snapshot" ? ": the snapshot has no history." : "."),
    );
  const marks = marksOf(object(device.failures || object(process.detail).failures), device.device);
  const total = object(device.ledger).total;
  const told = summary(line, marks, total);
  const box = el("div", {
    class: "chart",
    tabindex: 0,
    role: "img",
    "aria-label": "Memory over time. " + told + " Arrow keys move, plus and minus zoom, 0 shows everything.",
  });
  const buttons = el("div", { class: "tools" });
  const kinds = object(line.kinds);
  if (list(kinds.us).length)
    return [
      el("p", {}, told),
      buttons,
      kindsChart({
        line,
        kinds,
        failed: object(device.ledger).at === "oom",
        failures: marks,
        total,
        words: object(device.words),
        box,
        buttons,
        live,
      }),
    ];
  totalsChart(line, marks, total, line.timed !== false, box, buttons, live);
  return [
    el("p", {}, told),
    buttons,
    box,
    line.kinds === null
      ? missing(
          "What the tensors were for is not known over time: an older cuwhy made this recording, " +
            "or there was no room to keep it.",
        )
      : null,
  ];
}

// --- the ledger ----------------------------------------------------------------------------------------------

const PART_COLORS = {
  tensors: "--tensors",
  cache: "--cache",
  cache_in_used_segments: "--cache",
  cache_free_segments: "--cache2",
  private_pools: "--cache2",
  other_libraries: "--libs",
  context: "--ctx",
  other_processes: "--procs",
  outside: "--rest",
  rest: "--rest",
  unmeasured: "--free",
  free: "--free",
};
const OPEN = new Set(["free", "unmeasured", "cache_free_segments", "private_pools"]);
const letter = (i) => String.fromCharCode(65 + (i % 26));

function barOf(title, parts, words, colors, all) {
  const shown = Object.entries(parts).filter(([, n]) => isNumber(n) && n > 0);
  const sum = shown.reduce((a, [, n]) => a + n, 0);
  const scale = all > sum ? all : sum;
  const color = (id) => `var(${colors[id] || "--rest"})`;
  return [
    el(
      "div",
      {
        class: "bar",
        role: "img",
        "aria-label": `${title}: ` + shown.map(([id, n]) => `${words[id] || id} ${bytes(n)}`).join(", "),
      },
      shown.map(([id, n], i) =>
        el(
          "span",
          {
            class: OPEN.has(id) ? "open" : null,
            title: `${words[id] || id}: ${bytes(n)}`,
            css: { background: color(id), flex: `${n / scale} 1 0` },
          },
          n / scale > 0.2
            ? el("b", {}, `${letter(i)} \u2002${bytes(n)}`)
            : n / scale > 0.025
              ? el("b", {}, letter(i))
              : "",
        ),
      ),
    ),
    scroller(
      title,
      el(
        "table",
        { "aria-label": title, class: "narrow" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "part"),
            el("th", { scope: "col", class: "n" }, "bytes"),
            el("th", { scope: "col", class: "n" }, "share"),
          ),
        ),
        el(
          "tbody",
          {},
          shown.map(([id, n], i) =>
            el(
              "tr",
              {},
              el(
                "th",
                { scope: "row" },
                el(
                  "span",
                  { class: "swatch" + (OPEN.has(id) ? " open" : ""), css: { background: color(id) } },
                  letter(i),
                ),
                words[id] || id,
              ),
              el("td", { class: "n" }, bytes(n)),
              el("td", { class: "n" }, percent(n, scale)),
            ),
          ),
          el(
            "tr",
            {},
            el("th", { scope: "row" }, el("b", {}, "total")),
            el("td", { class: "n" }, el("b", {}, bytes(sum))),
            el("td", { class: "n" }, ""),
          ),
        ),
      ),
      "tall",
    ),
  ];
}

export function ledgerPanel(data, process, device) {
  const ledger = object(device.ledger);
  const parts = object(ledger.parts);
  const kinds = object(ledger.kinds);
  if (!Object.values(parts).some((n) => n > 0))
    return missing(
      data.input.kind === "dump" ? NOT_IN_DUMP : "No GPU memory was used, or what held it was not recorded.",
    );
  const words = object(device.words);
  return [
    el(
      "p",
      { class: "soft" },
      `${capital(moment(ledger.at))}${isNumber(ledger.us) ? `, ${seconds(ledger.us / 1e6)} after the start` : ""}. `,
      isNumber(ledger.total)
        ? `The parts add up to the card's ${bytes(ledger.total)}.`
        : "The size of the card is not known here.",
    ),
    barOf("The memory of the device", parts, object(words.parts), PART_COLORS, ledger.total || 0),
    Object.values(kinds).filter((n) => n > 0).length === 1 && kinds.other > 0
      ? el(
          "p",
          { class: "soft" },
          "None of the tensors is a parameter or a gradient, belongs to an optimizer, or is kept for backward.",
        )
      : Object.values(kinds).some((n) => n > 0)
        ? [
            el("h3", {}, "What the tensors are"),
            barOf("What the tensors are", kinds, object(words.kinds), KIND_COLORS, 0),
          ]
        : null,
    object(ledger.pinned).peak
      ? el(
          "p",
          { class: "soft" },
          `Pinned host memory: ${bytes(ledger.pinned.bytes)}, at most ${bytes(ledger.pinned.peak)}.`,
        )
      : null,
  ];
}

// --- by line -------------------------------------------------------------------------------------------------

const nameOf = (line) =>
  line.part === "other_processes"
    ? line.pid
      ? `process ${line.pid}${line.command ? ": " + line.command : ""}`
      : "a process outside this container"
    : line.file
      ? `${line.file}:${line.line}${line.function && line.function[0] !== "<" ? " in " + line.function : ""}` +
        `${line.library ? ", " + line.library : ""}`
      : line.library || "no line known";

// Rows have a name, bytes, perhaps what they are, and counts; they can be sorted and filtered. `one`: what a row is.
function tableOf(rows, columns, one) {
  const most = rows.reduce((a, r) => Math.max(a, r.bytes), 1);
  const state = { key: "bytes", down: true, words: "", all: false };
  const body = el("tbody", {});
  const status = el("span", { role: "status", class: "soft" });
  const heads = columns.map(([key, label, number]) => {
    const button = el(
      "button",
      {
        type: "button",
        onclick: () => {
          state.down = state.key === key ? !state.down : number;
          state.key = key;
          draw();
        },
      },
      label,
    );
    const head = el("th", { scope: "col", class: number ? "n" : null }, button);
    head.column = key;
    return head;
  });
  const more = el(
    "button",
    {
      type: "button",
      onclick: () => {
        state.all = true;
        draw();
      },
    },
    "Show all",
  );
  function draw() {
    const wanted = state.words.toLowerCase();
    const found = rows.filter((r) => !wanted || (r.name + " " + r.what).toLowerCase().includes(wanted));
    found.sort(
      (a, b) => (a[state.key] < b[state.key] ? -1 : a[state.key] > b[state.key] ? 1 : 0) * (state.down ? -1 : 1),
    );
    const shown = state.all ? found : found.slice(0, 30);
    clear(body).append(
      ...shown.map((r) =>
        el(
          "tr",
          {},
          columns.map(([key]) =>
            key === "name"
              ? el("th", { scope: "row", class: "place" }, unbroken(r.name))
              : key === "what"
                ? el("td", {}, r.what)
                : key === "bytes"
                  ? el(
                      "td",
                      { class: "n" },
                      el(
                        "span",
                        { class: "meter", "aria-hidden": "true" },
                        el("i", { css: { width: (100 * r.bytes) / most + "%" } }),
                      ),
                      el("span", { class: "figure" }, bytes(r.bytes)),
                    )
                  : el("td", { class: "n" }, r[key] ? count(r[key]) : ""),
          ),
        ),
      ),
    );
    for (const head of heads) {
      if (head.column === state.key) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.firstChild.textContent =
        columns.find(([key]) => key === head.column)[1] +
        (head.column === state.key ? (state.down ? " \u2193" : " \u2191") : "");
    }
    more.hidden = shown.length === found.length;
    status.textContent =
      `${count(shown.length)} of ${many(found.length, one)}, ` + `${bytes(found.reduce((a, r) => a + r.bytes, 0))}`;
  }
  const search = el("input", {
    type: "search",
    oninput: (e) => {
      state.words = e.target.value;
      draw();
    },
  });
  draw();
  const label = "Memory by " + one;
  return [
    el("div", { class: "tools" }, el("label", {}, "Filter ", search), status, more),
    scroller(
      label,
      el("table", { id: one + "s-table", "aria-label": label }, el("thead", {}, el("tr", {}, heads)), body),
    ),
  ];
}

export function linesPanel(data, process, device) {
  const ledger = object(device.ledger);
  const words = object(device.words);
  const rows = list(ledger.lines)
    .filter((l) => l && isNumber(l.bytes))
    .map((l) => ({
      name: nameOf(l),
      what: (l.kind ? object(words.kinds)[l.kind] : object(words.parts)[l.part]) || l.part || "",
      bytes: l.bytes,
      count: l.count || 0,
      made: l.made || 0,
    }));
  if (!rows.length)
    return missing(
      data.input.kind === "dump"
        ? NOT_IN_DUMP
        : "No line of code is known for the memory of this device. Lines are recorded where Python's frames can be " +
            "walked; the notes above say if they could not.",
    );
  const columns = [
    ["name", "line", false],
    ["what", "what it is", false],
    ["bytes", "bytes", true],
    ["count", "tensors", true],
    ["made", "ever allocated", true],
  ].filter(([key]) => key !== "made" || rows.some((r) => r.made));
  return [
    el(
      "p",
      { class: "soft" },
      `${capital(moment(ledger.at))}, by the innermost line of your own code.`,
      ledger.lines_complete === false
        ? " Some tensors have no line: they have been freed since, and are no longer in any table."
        : "",
    ),
    ...tableOf(rows, columns, "line"),
    ledger.lines_left_out
      ? missing(`${many(ledger.lines_left_out, "smaller line")} with ${bytes(ledger.bytes_left_out)} are omitted.`)
      : null,
  ];
}

// --- by module -----------------------------------------------------------------------------------------------

const moduleName = (module, several) =>
  module.path === null
    ? "no module known"
    : module.path === ""
      ? module.class
      : (several ? module.model + ": " : "") + module.path;

export function modulesPanel(data, process, device) {
  const ledger = object(device.ledger);
  const kinds = object(object(device.words).kinds);
  const modules = list(ledger.modules).filter((m) => m && isNumber(m.bytes));
  const known = modules.filter((m) => m.path !== null);
  if (!known.length) return null;
  const several = new Set(known.map((m) => m.model)).size > 1;
  const columns = [
    ["name", "module", false],
    ["what", "mostly", false],
    ["bytes", "bytes", true],
  ];
  const rows = modules.map((m) => {
    const [most] = Object.entries(object(m.kinds)).sort((a, b) => b[1] - a[1]);
    return { name: moduleName(m, several), what: most ? kinds[most[0]] || "" : "", bytes: m.bytes };
  });
  return [
    el(
      "p",
      { class: "soft" },
      `${capital(moment(ledger.at))}, by the innermost module of the model; they add up to all tensors.`,
    ),
    ...tableOf(rows, columns, "module"),
  ];
}
