// SPDX-License-Identifier: Apache-2.0
// Reads the page's data and shows it, panel by panel. A panel that fails says so and leaves the others alone.
import { clear, el, missing, showMore } from "./dom.js";
import { capital, count, isNumber, list, many, object } from "./format.js";
import { blocksPanel } from "./blocks.js";
import { causesPanel } from "./causes.js";
import { verdictPanel } from "./verdict.js";
import { faultPanel } from "./fault.js";
import { ledgerPanel, linesPanel, modulesPanel, timelinePanel } from "./memory.js";
import { flamePanel } from "./flame.js";
import { mapPanel } from "./map.js";
import { whatIfPanel } from "./whatif.js";
import { errorsPanel, launchesPanel } from "./launches.js";
import { environmentPanel, processesPanel } from "./processes.js";
import { jobVerdict } from "./job.js";
import { ranksPanel } from "./jobranks.js";

const PANELS = [
  ["ranks", "Ranks over time", "Ranks", ranksPanel],
  ["fault", "The fault", "Fault", faultPanel],
  ["timeline", "Memory over time", "Over time", timelinePanel],
  ["blocks", "Every block over time", "Blocks", blocksPanel],
  ["what-if", "What other settings would have changed", "What if", whatIfPanel],
  ["ledger", "What held the memory", "Ledger", ledgerPanel],
  ["map", "PyTorch's segments", "Segments", mapPanel],
  ["lines", "Memory by line", "Lines", linesPanel],
  ["modules", "Memory by module", "Modules", modulesPanel],
  ["flame", "Memory by call stack", "Stacks", flamePanel],
  ["launches", "Last launches", "Launches", launchesPanel],
  ["errors", "Errors", "Errors", errorsPanel],
  ["processes", "Processes", "Processes", processesPanel],
  ["environment", "Environment", "Environment", environmentPanel],
  ["causes", "What the causes mean", "Causes", causesPanel],
];

// A bundle describes a machine, not a run; a job has ranks on many of them. What never used a GPU has no kernels and no
// GPU memory to tell about.
const OF_A_GPU = ["fault", "timeline", "blocks", "what-if", "ledger", "map", "lines", "modules", "flame", "launches"];

function usedGpu(data, detail) {
  if (data.input.kind !== "recording") return true;
  return (
    list(detail.devices).length > 0 ||
    list(object(detail.launches).list).length > 0 ||
    list(detail.environment).some(([name]) => /^device \d/.test(name)) ||
    Boolean(object(data.verdict).fault || object(data.verdict).kernel || list(data.missing).length)
  );
}

const ONLY = { bundle: ["environment", "causes"], job: ["ranks", "causes"] };

function panelsOf(data, process) {
  const only = ONLY[data.input.kind];
  if (only) return PANELS.filter(([id]) => only.includes(id));
  if (data.input.kind === "recording" && !list(data.processes).length) return [];
  const gpu = usedGpu(data, object(process.detail));
  return PANELS.filter(([id]) => id !== "ranks" && (gpu || !OF_A_GPU.includes(id)));
}

const live = { charts: [], queue: [], later: (work) => live.queue.push(work) };
const chosen = { process: 0, device: 0 };

function guard(name, make) {
  try {
    return make();
  } catch (error) {
    console.warn("panel " + name, error);
    return missing("This panel could not be drawn from the data: " + error.message);
  }
}

function panel([id, title, , make], data, process, device) {
  const always = ["fault", "processes", "what-if", "blocks", "flame", "causes"].includes(id);
  const unread = !process.detail && data.input.kind === "recording" && !always;
  const body = unread
    ? missing("No process in this recording could be read: the notes at the top say why.")
    : guard(id, () => make(data, process, device, live));
  if (body === null) return null; // this recording has no such panel
  const empty = body instanceof Element && body.classList.contains("missing");
  if (empty && process.detail && list(data.missing).length && id !== "fault")
    body.append(" Parts of the recording are missing: the notes at the top say which.");
  return el(
    "section",
    { class: empty ? "panel empty" : "panel", id, "aria-labelledby": id + "-title" },
    el("header", {}, el("h2", { id: id + "-title" }, title)),
    body,
  );
}

// --- light and dark ------------------------------------------------------------------------------------------

const wish = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";

function applyTheme() {
  document.documentElement.dataset.theme = theme === "auto" ? (wish.matches ? "dark" : "light") : theme;
  for (const chart of live.charts) chart.redraw(false, true);
}

function themeSwitch() {
  const pick = el(
    "select",
    {
      id: "theme",
      "aria-label": "Page colors",
      onchange: (e) => {
        theme = e.target.value;
        applyTheme();
      },
    },
    [
      ["auto", "Auto"],
      ["light", "Light"],
      ["dark", "Dark"],
    ].map(([value, label]) => el("option", { value }, label)),
  );
  return pick;
}

// --- which process, which device -----------------------------------------------------------------------------

function nameOf(row) {
  return (
    `process ${row.pid}${isNumber(row.rank) ? `, rank ${row.rank}` : ""}` +
    `${row.cause && row.cause !== "none" ? ", " + row.cause : ""}`
  );
}

function choosers(data, detailed, devices, redraw) {
  if (detailed.length < 2 && devices.length < 2) return null;
  const select = (label, options, at, set) =>
    el(
      "label",
      {},
      label + " ",
      el(
        "select",
        {
          onchange: (e) => {
            set(e.target.selectedIndex);
            redraw();
          },
        },
        options.map((text, i) => el("option", { selected: i === at || null }, text)),
      ),
    );
  return el(
    "div",
    { class: "tools", role: "group", "aria-label": "What the panels below show" },
    detailed.length > 1
      ? select("The panels below show", detailed.map(nameOf), chosen.process, (i) => {
          chosen.process = i;
          chosen.device = 0;
        })
      : null,
    devices.length > 1
      ? select(
          "device",
          devices.map((d) => `${d.device}${d.name ? ": " + d.name : ""}`),
          chosen.device,
          (i) => (chosen.device = i),
        )
      : null,
    list(data.processes).length > detailed.length && detailed.length > 1
      ? el(
          "span",
          { class: "soft" },
          `details are kept for ${count(detailed.length)} of ${count(data.processes.length)} processes`,
        )
      : null,
  );
}

// The device that the failure names, else the first.
function deviceOf(devices) {
  const failed = devices.findIndex((d) => object(d.ledger).at === "oom");
  return failed < 0 ? 0 : failed;
}

// What has nothing to show is out of the way; its reasons can still be read.
function emptyOnes(panels) {
  if (!panels.length) return null;
  const titles = panels.map((p) => p.querySelector("h2").textContent);
  const names = titles.map((title, i) =>
    i ? title.replace(/^(The|What|Memory|Last|Every|Errors|Processes|Environment)\b/, (w) => w.toLowerCase()) : title,
  );
  return el(
    "details",
    { class: "nothing" },
    el("summary", {}, `${capital(many(panels.length, "panel"))} without data: `, names.join(", ")),
    panels,
  );
}

const link = (id, words) => el("a", { href: "#" + id }, words);

function drawPanels(data, main, focus) {
  const detailed = list(data.processes).filter((p) => p && p.detail);
  const process = detailed[chosen.process] || {};
  const devices = list(object(process.detail).devices);
  const device = object(devices[chosen.device]);
  for (const chart of live.charts.splice(0)) chart.destroy();
  live.queue.length = 0;
  const redraw = () => drawPanels(data, main, true);
  const tools = choosers(data, detailed, devices, redraw);
  const panels = panelsOf(data, process)
    .map((p) => panel(p, data, process, device))
    .filter(Boolean);
  const empty = (p) => p.classList.contains("empty");
  clear(document.getElementById("panels")).append(
    link("verdict", "Verdict"),
    ...panels.filter((p) => !empty(p)).map((p) => link(p.id, PANELS.find(([id]) => id === p.id)[2])),
  );
  clear(main).append(
    ...[
      guard("verdict", () =>
        data.job
          ? jobVerdict(data)
          : verdictPanel(data, detailed[0] || object(list(data.processes)[0]), !panels.every(empty)),
      ),
      tools,
      ...panels.filter((p) => !empty(p)),
      emptyOnes(panels.filter(empty)),
    ].filter(Boolean),
  );
  showMore(main);
  const nav = document.getElementById("panels");
  if (nav.tell) nav.tell();
  else showMore(nav.parentNode);
  for (const work of live.queue.splice(0)) guard("chart", work);
  if (focus && tools) tools.querySelector("select").focus();
}

function frame(data, main) {
  const input = object(data.input);
  return [
    el(
      "header",
      { class: "top" },
      el(
        "div",
        { class: "in" },
        el("span", { class: "name" }, "cuwhy"),
        el("nav", { id: "panels", "aria-label": "Panels" }),
        themeSwitch(),
      ),
    ),
    main,
    el(
      "footer",
      {},
      el(
        "p",
        {},
        `cuwhy ${data.cuwhy || ""} made this page from the ` +
          `${input.kind === "dump" ? "core dump" : input.kind || "file"} `,
        el("code", {}, input.path || ""),
        isNumber(data.made) ? ` on ${new Date(data.made * 1000).toISOString().slice(0, 10)}` : "",
        ".",
      ),
      el(
        "p",
        {},
        "It loads nothing and sends nothing. It contains source lines, command lines and folder names: " +
          "check it before you publish it.",
      ),
    ),
  ];
}

function start() {
  const app = document.getElementById("app");
  const main = el("main", { id: "main", tabindex: -1 });
  let data;
  try {
    data = object(JSON.parse(document.getElementById("cuwhy-data").textContent));
  } catch (error) {
    app.append(
      el(
        "main",
        { id: "main" },
        el("h1", {}, "This page has no data"),
        missing("It was truncated or modified: " + error.message),
      ),
    );
    return;
  }
  data.input = object(data.input);
  applyTheme();
  wish.addEventListener("change", applyTheme);
  app.append(...frame(data, main));
  const detailed = list(data.processes).filter((p) => p && p.detail);
  chosen.device = deviceOf(list(object(object(detailed[0]).detail).devices));
  drawPanels(data, main, false);
  const verdict = object(data.verdict);
  document.title = `cuwhy: ${
    data.title ||
    object(data.job).title ||
    (verdict.cause === "none" ? "no CUDA failure" : null) ||
    verdict.title ||
    verdict.cause ||
    "report"
  }`;
  addEventListener("resize", () => {
    for (const chart of live.charts)
      chart.setSize({ width: Math.max(280, chart.root.parentNode.clientWidth), height: 260 });
  });
  document.documentElement.dataset.ready = "yes";
}

start();
