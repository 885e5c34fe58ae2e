// SPDX-License-Identifier: Apache-2.0
// The last launches before the failure, on a line for each thread and stream; and the recorded errors.
import { clear, el, missing, scroller, svg, unbroken } from "./dom.js";
import { placeText } from "./verdict.js";
import { count, isNumber, list, many, object, seconds, stream, triple } from "./format.js";

const WIDTH = 1000;
const LEFT = 175;
const ROW = 26;

const laneName = (lane) =>
  lane.waits ? `thread ${lane.tid}: waits` : `thread ${lane.tid}, stream ${stream(lane.stream)}`;

function describe(launch, end, launches, lines) {
  const name =
    list(launches.kernels)[launch.kernel] ||
    (launch.kind === "graph" ? "a CUDA graph" : launch.api || "a kernel without a name");
  const dims = list(launch.dims);
  return [
    el("b", {}, name),
    dims.length === 6 ? ` \u2002grid ${triple(dims.slice(0, 3))} block ${triple(dims.slice(3))}` : "",
    launch.kind === "captured" ? " (captured into a graph)" : "",
    launch.blamed ? " \u2014 matches the fault by kernel, dimensions and line" : "",
    launch.result ? ` \u2014 returned error ${launch.result}` : "",
    el("br"),
    el(
      "span",
      { class: "place" },
      lines[launch.line] || (isNumber(launch.forward) && lines[launch.forward] ? "" : "no Python line"),
    ),
    isNumber(launch.forward) && lines[launch.forward]
      ? ["backward of ", el("span", { class: "place" }, lines[launch.forward])]
      : "",
    ` \u2002${seconds((end - launch.ns) / 1e9)} before the ${isNumber(launches.failed_ns) ? "failure" : "end"}`,
  ];
}

function lanesView(launches, shown, end, lines, said) {
  const lanes = list(launches.lanes);
  const waits = list(launches.waits).filter((w) => isNumber(w.ns) && w.lane >= 0);
  const all = [...shown, ...waits].sort((a, b) => a.ns - b.ns);
  const first = all.reduce((a, l) => Math.min(a, l.ns), end);
  const span = Math.max(end - first, 1);
  const x = (ns) => LEFT + ((ns - first) / span) * (WIDTH - LEFT - 14);
  const height = lanes.length * ROW + 26;
  const drawing = svg("svg", {
    class: "lanes",
    viewBox: `0 0 ${WIDTH} ${height}`,
    tabindex: 0,
    role: "img",
    "aria-label":
      `${many(shown.length, "launch", "launches")} in ${seconds(span / 1e9)} on ` +
      `${many(lanes.filter((l) => !l.waits).length, "line")}. Arrow keys move from launch to launch.`,
  });
  lanes.forEach((lane, i) => {
    drawing.append(
      svg("path", { d: `M${LEFT} ${i * ROW + ROW / 2 + 2}H${WIDTH - 10}`, stroke: "var(--rule)" }),
      svg("text", { x: 0, y: i * ROW + ROW / 2 + 6 }, laneName(lane)),
    );
  });
  const marks = new Map();
  for (const launch of all) {
    const y = (launch.lane < 0 ? lanes.length - 1 : launch.lane) * ROW + 4;
    const at = x(launch.ns).toFixed(2);
    const bad = launch.blamed || launch.result;
    const mark = launch.api
      ? svg("path", {
          d: `M${at} ${y + 4}l5 6l-5 6l-5 -6z`,
          fill: bad ? "var(--bad)" : "var(--panel)",
          stroke: bad ? "var(--bad)" : "var(--soft)",
        })
      : launch.kind === "graph"
        ? svg("rect", { x: at - 3, y: y + 3, width: 6, height: 14, fill: bad ? "var(--bad)" : "var(--c2)" })
        : svg("rect", {
            x: at - (bad ? 1.5 : 0.8),
            y: bad ? y - 2 : y + 2,
            width: bad ? 3 : 1.6,
            height: bad ? 22 : 16,
            fill: bad ? "var(--bad)" : launch.kind === "captured" ? "var(--faint)" : "var(--tensors)",
          });
    marks.set(launch, mark);
    drawing.append(mark);
  }
  if (isNumber(launches.failed_ns))
    drawing.append(
      svg("path", { d: `M${x(end)} 0V${height - 20}`, stroke: "var(--bad)", "stroke-width": 1.5 }),
      svg("text", { x: WIDTH - 10, y: height - 6, "text-anchor": "end", class: "bad" }, "failure noticed"),
    );
  drawing.append(svg("text", { x: LEFT, y: height - 6 }, `${seconds(span / 1e9)} before`));
  let on = null;
  const pick = (launch) => {
    if (on) marks.get(on).classList.remove("on");
    on = launch;
    marks.get(on).classList.add("on");
    clear(said).append(...describe(launch, end, launches, lines).flat());
  };
  const nearest = (e) => {
    const box = drawing.getBoundingClientRect();
    const ns = first + ((((e.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 14)) * span;
    const lane = Math.floor((((e.clientY - box.top) / box.height) * height) / ROW);
    const near = all.filter((l) => l.lane === lane);
    return (near.length ? near : all).reduce((a, l) => (Math.abs(l.ns - ns) < Math.abs(a.ns - ns) ? l : a));
  };
  drawing.addEventListener("mousemove", (e) => pick(nearest(e)));
  drawing.addEventListener("click", (e) => pick(nearest(e)));
  drawing.addEventListener("keydown", (e) => {
    const at = on ? all.indexOf(on) : all.length;
    const to = {
      ArrowLeft: Math.max(at - 1, 0),
      ArrowRight: Math.min(at + 1, all.length - 1),
      Home: 0,
      End: all.length - 1,
    }[e.key];
    if (to === undefined) return;
    pick(all[to]);
    e.preventDefault();
  });
  return drawing;
}

function launchTable(launches, shown, end, lines) {
  return scroller(
    "Launches, newest first",
    el(
      "table",
      { "aria-label": "Launches, newest first" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["before the failure", "kernel", "grid", "block", "line", "thread, stream"].map((h) =>
            el("th", { scope: "col" }, h),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        [...shown]
          .reverse()
          .map((l) =>
            el(
              "tr",
              {},
              el("th", { scope: "row", class: "n" }, seconds((end - l.ns) / 1e9)),
              el(
                "td",
                {},
                l.blamed ? el("b", {}, "\u25b8 ") : "",
                list(launches.kernels)[l.kernel] || (l.kind === "graph" ? "a CUDA graph" : "?"),
                l.kind === "captured" ? " (captured)" : "",
              ),
              el("td", { class: "n" }, l.dims ? triple(l.dims.slice(0, 3)) : ""),
              el("td", { class: "n" }, l.dims ? triple(l.dims.slice(3)) : ""),
              el("td", { class: "place" }, unbroken(lines[l.line] || lines[l.forward])),
              el("td", {}, list(launches.lanes)[l.lane] ? laneName(launches.lanes[l.lane]) : ""),
            ),
          ),
      ),
    ),
  );
}

export function launchesPanel(data, process) {
  const detail = object(process.detail);
  const launches = object(detail.launches);
  const shown = list(launches.list).filter((l) => l && isNumber(l.ns));
  if (!shown.length)
    return missing(
      data.input.kind === "snapshot"
        ? "A memory snapshot has no launches; a recording of 'cuwhy run' does."
        : data.input.kind === "dump"
          ? "A core dump has only one kernel; a recording of 'cuwhy run' has the launches before it."
          : detail.launches === undefined
            ? "The launches are not in this page."
            : "No launch was recorded.",
    );
  const lines = list(detail.lines);
  const newest = shown[shown.length - 1].ns;
  const end = isNumber(launches.failed_ns) ? Math.max(launches.failed_ns, newest) : newest;
  const said = el(
    "div",
    { class: "said", role: "status" },
    "Point at a launch, or use the arrow keys, to see its kernel and line.",
  );
  const blamed = shown.find((l) => l.blamed);
  return [
    el(
      "p",
      { class: "soft" },
      shown.length === 1 ? "The last launch" : `The last ${many(shown.length, "launch", "launches")}`,
      launches.left_out ? ` of ${count(launches.recorded)} in the recording` : "",
      `, at the time the program made ${shown.length === 1 ? "it" : "them"}. ` +
        "The GPU runs launches later; a diamond is a call that waits for it.",
    ),
    blamed
      ? el(
          "p",
          {},
          "The red mark is the newest launch that matches the fault by kernel, dimensions and line. ",
          launches.others ? "Launches from other lines match as well. " : "",
          launches.between
            ? `${many(launches.between, "launch", "launches")} between it and the others are not drawn.`
            : "",
        )
      : null,
    lanesView(launches, shown, end, lines, said),
    said,
    el("details", {}, el("summary", {}, "The launches as a table"), launchTable(launches, shown, end, lines)),
  ];
}

export function errorsPanel(data, process) {
  const detail = object(process.detail);
  const failures = object(detail.failures || object(list(detail.devices)[0]).failures);
  const rows = list(failures.list);
  if (!rows.length)
    return missing(data.input.kind === "dump" ? "A core dump has no list of errors." : "No CUDA call failed.");
  const lines = list(detail.lines);
  const handled = list(object(data.verdict).notes);
  return [
    handled.length && object(data.verdict).cause !== "none"
      ? el(
          "p",
          {},
          "Handled by the program before: ",
          handled
            .slice(0, 8)
            .map((note, i) => [
              i ? "; " : "",
              note.title,
              " (",
              el("span", { class: "place" }, unbroken(placeText(object(note.where)))),
              ")",
            ]),
          handled.length > 8 ? "; \u2026" : ".",
        )
      : null,
    failures.left_out ? missing(`${many(failures.left_out, "earlier one")} are omitted.`) : null,
    scroller(
      "Errors",
      el(
        "table",
        { "aria-label": "Errors, oldest first" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["after", "noticed by", "error", "line", "times"].map((h, i) =>
              el("th", { scope: "col", class: i === 4 ? "n" : null }, h),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          rows.map((f) =>
            el(
              "tr",
              {},
              el("th", { scope: "row", class: "n" }, seconds(f.us / 1e6)),
              el("td", {}, f.source, f.api ? [": ", el("code", {}, f.api)] : ""),
              el("td", {}, f.code ? `${f.code} ${f.name || ""} ` : "", el("span", { class: "soft" }, f.text || "")),
              el("td", { class: "place" }, unbroken(lines[f.line])),
              el("td", { class: "n" }, count(f.count)),
            ),
          ),
        ),
      ),
    ),
  ];
}
