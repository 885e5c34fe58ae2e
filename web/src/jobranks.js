// SPDX-License-Identifier: Apache-2.0
// The ranks of a job as rows over time. Ranks that did the same share a row, which opens; only rows in sight are in the
// page, so that thousands of ranks stay usable. A line goes down from the first failure, with arrows to its victims.
import { causeLink } from "./causes.js";
import { clear, el, missing, rich, showMore, svg, unique } from "./dom.js";
import { isOpenQuestion, nameOf, rankOf, roleWords, shortRanges, verdictOf } from "./job.js";
import { fixOf, sureOf, whereOf } from "./verdict.js";
import { capital, count, isNumber, list, many, object, seconds } from "./format.js";

const ALONE = 24; // so few ranks have a row each
const FEW = 3; // and so few of a group
const MARGIN = 12; // pixels around the times of a strip
const narrow = matchMedia("(max-width: 640px)");
const ORDER = ["first", "failed", "missing", "victim", "open", "fine"];
const COLOR = {
  first: "var(--bad)",
  failed: "var(--warn)",
  victim: "var(--c7)",
  open: "var(--c8)",
  fine: "var(--c2)",
};

// --- what there is to show -----------------------------------------------------------------------------------

// When something happened to a rank; the last sign of one that has no end.
const eventOf = (r) => [r.failed, r.ended, r.seen].find(isNumber);
const endOf = (r) => [r.ended, r.seen, r.failed].find(isNumber);
const isLost = (r) => !isNumber(r.failed) && !isNumber(r.ended);

function rowOf(job, members) {
  return members.length === 1
    ? { rank: members[0], role: members[0].role, members }
    : { members, role: members[0].role, group: object(list(job.groups)[members[0].group]) };
}

// Top rows: single ranks, or groups of them.
function topRows(job) {
  const ranks = list(job.ranks).map((_, at) => rankOf(job, at));
  const groups = new Map();
  for (const rank of ranks) {
    if (!groups.has(rank.group)) groups.set(rank.group, []);
    groups.get(rank.group).push(rank);
  }
  const rows = [];
  for (const members of groups.values())
    if (ranks.length <= ALONE || members.length <= FEW) rows.push(...members.map((r) => rowOf(job, [r])));
    else rows.push(rowOf(job, members));
  if (job.missing) rows.push({ role: "missing", members: [] });
  const at = (row) => (row.rank ? row.rank.at : row.members.length ? row.members[0].at : 0);
  return {
    ranks,
    rows: rows.sort((a, b) => ORDER.indexOf(a.role) - ORDER.indexOf(b.role) || at(a) - at(b)),
  };
}

function nameOfRow(job, row) {
  if (row.role === "missing") return `${many(job.missing, "rank")} without a file`;
  if (row.rank) return capital(nameOf(row.rank));
  const counted = isNumber(row.group.count) ? row.group.count : row.members.length;
  return `${count(counted)} ${row.members.every((r) => isNumber(r.rank)) ? "ranks" : "processes"}`;
}

function wordsOfRow(job, row) {
  if (row.role === "missing") return shortRanges(job.missing_ranks, 24);
  const rank = row.rank || row.members[0];
  const of = row.rank && isNumber(rank.of) ? ` (of ${nameOf(rankOf(job, rank.of))})` : "";
  return `${roleWords(job, row.role)}${of}: ${rank.did || "nothing is known"}`;
}

// --- time ----------------------------------------------------------------------------------------------------

// Where the consequences begin: when the first one failed, or the first victim complained if that was earlier.
function originOf(job, ranks) {
  const first = list(job.first)
    .map((at) => ranks[at])
    .filter((r) => r && isNumber(eventOf(r)));
  if (!first.length) return null;
  const early = first.reduce((a, r) => (eventOf(r) < eventOf(a) ? r : a));
  if (isOpenQuestion(job)) {
    const range = (sign) => first.map((r) => eventOf(r) + (sign * r.machine.apart) / 2);
    return {
      from: Math.min(...range(-1)),
      to: Math.max(...range(1)),
      open: true,
      zero: eventOf(early),
      words: wordsOfZero(early),
    };
  }
  const at = ranks.reduce((a, r) => {
    const time = r.role === "victim" && !r.machine.loose ? eventOf(r) : null;
    return isNumber(time) && time < a ? time : a;
  }, eventOf(early));
  const words = at < eventOf(early) ? `the first victim of ${nameOf(early)} complained` : wordsOfZero(early);
  return { from: at, to: at, of: new Set(first.map((r) => r.at)), zero: at, words };
}

function wordsOfZero(rank) {
  const what = isNumber(rank.failed) ? "failed" : isNumber(rank.ended) ? "ended" : "was last seen";
  return `${nameOf(rank)} ${what}`;
}

function viewsOf(ranks, origin) {
  const all = ranks.flatMap((r) => [r.start, r.failed, r.ended, r.seen]).filter(isNumber);
  if (!all.length) return null;
  const bounds = (times) => times.reduce(([a, b], t) => [Math.min(a, t), Math.max(b, t)], [Infinity, -Infinity]);
  const spread = ([from, to]) => {
    const span = Math.max(to - from, 1000);
    return [from - span * 0.12, to + span * 0.06];
  };
  const whole = spread(bounds(all));
  const failing = ranks
    .filter((r) => r.role !== "fine")
    .map(eventOf)
    .filter(isNumber);
  const near =
    origin && failing.length ? spread(bounds([origin.from, ...failing.filter((t) => t >= origin.from)])) : whole;
  return { whole, near: [Math.max(near[0], whole[0]), Math.min(near[1], whole[1])] };
}

function ticksOf([from, to], room) {
  const span = (to - from) / 1e6;
  const step = [1, 2, 5]
    .flatMap((n) => Array.from({ length: 16 }, (_, i) => n * 10 ** (i - 7)))
    .concat([60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400])
    .sort((a, b) => a - b)
    .find((s) => span / s <= Math.max(2, room / 110));
  if (!step) return [];
  const ticks = [];
  for (let n = Math.ceil(from / 1e6 / step); n * step <= to / 1e6 && ticks.length < 40; n++) ticks.push(n * step);
  return ticks;
}

// Times of the page are shifted so that 0 is where the consequences begin.
function shift(ranks, by) {
  for (const rank of ranks)
    for (const key of ["start", "failed", "ended", "seen"]) if (isNumber(rank[key])) rank[key] -= by;
}

const when = (us) => (us === 0 ? "0" : (us > 0 ? "+" : "\u2212") + seconds(Math.abs(us) / 1e6));

// --- drawing -------------------------------------------------------------------------------------------------

function markOf(role, x, y, color) {
  if (role === "first")
    return svg("path", { d: `M${x} ${y - 7}l7 7l-7 7l-7 -7z`, fill: color, stroke: "var(--panel)", "stroke-width": 1 });
  if (role === "failed")
    return svg("path", { d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z`, fill: "var(--panel)", stroke: color, "stroke-width": 2 });
  if (role === "fine") return svg("path", { d: `M${x} ${y - 6}v12`, stroke: color, "stroke-width": 2.5 });
  return svg("path", { d: `M${x - 4.5} ${y - 4.5}l9 9m0 -9l-9 9`, stroke: color, "stroke-width": 2.5 });
}

function arrowTo(from, to, y) {
  const back = to < from;
  const tip = to + (back ? 6 : -6);
  if (Math.abs(to - from) < 14) return null;
  return svg("path", {
    d: `M${from} ${y}H${tip}m${back ? 5 : -5} -3.5l${back ? -5 : 5} 3.5l${back ? 5 : -5} 3.5`,
    fill: "none",
    stroke: "var(--bad)",
    "stroke-width": 1.3,
  });
}

// One row: how long it ran, what happened when, how well that is known, and the line from the first failure.
function strip(row, { x, width, height, origin, after, ranks }) {
  const y = height / 2;
  const color = COLOR[row.role] || "var(--c8)";
  const drawing = svg("svg", { "aria-hidden": "true", width, height, viewBox: `0 0 ${width} ${height}` });
  if (origin && origin.open)
    drawing.append(
      svg("rect", {
        x: x(origin.from) - 4,
        y: 0,
        width: x(origin.to) - x(origin.from) + 8,
        height,
        fill: "var(--warn)",
        "fill-opacity": 0.25,
      }),
    );
  else if (origin && (after || row.members.some((r) => origin.of.has(r.at))))
    drawing.append(
      svg("path", { d: `M${x(origin.from)} ${after ? 0 : y}V${height}`, stroke: "var(--bad)", "stroke-width": 1.3 }),
    );
  const times = (what) => row.members.map(what).filter(isNumber);
  const starts = times((r) => r.start);
  const ends = times(endOf);
  if (!ends.length) {
    drawing.append(
      svg(
        "text",
        { x: MARGIN + 4, y: y + 4 },
        row.role === "missing" ? "no file: what they did is not known" : "its file has no times",
      ),
    );
    return drawing;
  }
  const loose = row.members.some((r) => r.machine.loose);
  const from = starts.length ? Math.max(x(Math.min(...starts)), 0) : x(Math.min(...ends)) - 2;
  const to = Math.min(x(Math.max(...ends)), width);
  drawing.append(
    svg("path", {
      d: `M${from.toFixed(1)} ${y}H${Math.max(to, from + 1).toFixed(1)}`,
      stroke: color,
      "stroke-width": 5,
      "stroke-opacity": 0.4,
      "stroke-dasharray": loose ? "3 4" : null,
    }),
  );
  const seen = new Set();
  for (const rank of row.members) {
    const at = eventOf(rank);
    if (!isNumber(at) || x(at) < -9 || x(at) > width + 9) continue;
    const apart = rank.machine.apart / 2;
    const [low, high] = [x(at - apart), x(at + apart)];
    if (row.rank && high - low > 3)
      drawing.append(
        svg("path", {
          d: `M${low} ${y - 8}v-3m0 1.5H${high}m0 -1.5v3`,
          fill: "none",
          stroke: "var(--soft)",
          "stroke-width": 1,
        }),
      );
    const place = Math.round(x(at));
    if (seen.has(place)) continue;
    seen.add(place);
    if (row.rank && isLost(rank))
      drawing.append(svg("text", { x: Math.min(place + 4, width - 12), y: y + 4, class: "strong" }, "?"));
    else if (row.rank || seen.size <= 200)
      drawing.append(
        row.rank
          ? markOf(row.role, place, y, color)
          : svg("path", { d: `M${place} ${y - 7}v14`, stroke: color, "stroke-width": 1.6 }),
      );
  }
  const victims = row.role === "victim" ? row.members.filter((r) => isNumber(eventOf(r)) && !r.machine.loose) : [];
  const of =
    row.rank && isNumber(row.rank.of) && origin && !(origin.of || new Set()).has(row.rank.of)
      ? ranks[row.rank.of]
      : null;
  const source = of ? eventOf(of) : origin && !origin.open ? origin.from : null;
  if (victims.length && isNumber(source)) {
    const arrow = arrowTo(x(source), Math.min(...victims.map((r) => x(eventOf(r)))), y);
    if (arrow) drawing.append(arrow);
  }
  return drawing;
}

function axisOf(view, width, x, origin) {
  const drawing = svg("svg", { "aria-hidden": "true", width, height: 22, viewBox: `0 0 ${width} 22` });
  for (const tick of ticksOf(view, width)) {
    const at = x(tick * 1e6);
    if (at < 0 || at > width) continue;
    const anchor = at < 24 ? "start" : at > width - 24 ? "end" : "middle";
    drawing.append(
      svg("path", { d: `M${at} 17v5`, stroke: "var(--faint)" }),
      svg("text", { x: at, y: 13, "text-anchor": anchor }, when(Math.round(tick * 1e6))),
    );
  }
  if (origin && !origin.open)
    drawing.append(svg("path", { d: `M${x(origin.from)} 15v7`, stroke: "var(--bad)", "stroke-width": 2 }));
  return drawing;
}

// --- one rank ------------------------------------------------------------------------------------------------

function timeOf(rank, us) {
  if (!isNumber(us)) return null;
  if (rank.machine.loose) return `${when(us)} by wall clocks, which prove nothing: it cannot be ordered`;
  return when(us) + (rank.machine.apart ? ` (known to within ${seconds(rank.machine.apart / 1e6)})` : "");
}

function endWords(rank) {
  if (isNumber(rank.signal)) return `signal ${rank.signal}`;
  if (isNumber(rank.exit)) return `exit status ${rank.exit}`;
  return (
    { running: "was running when its file was written", left: "outlived the cuwhy that watched it" }[rank.state] ||
    "not known"
  );
}

function collectivesOf(job, rank) {
  const words = list(job.words);
  const comms = list(rank.comms);
  if (!comms.length) return null;
  return el(
    "ul",
    { class: "plain" },
    comms.map((c) =>
      el(
        "li",
        {},
        `${count(c.called)} called in communicator `,
        el("code", {}, words[c.id] || "?"),
        isNumber(c.size) ? ` of ${many(c.size, "rank")}` : "",
        isNumber(c.done) ? `, ${count(c.done)} of them known to have ended` : "",
        words[c.last] ? [", the last one ", el("span", { class: "place" }, words[c.last])] : null,
        c.aborted ? ", aborted" : "",
      ),
    ),
  );
}

function rankView(data, rank, go) {
  const job = object(data.job);
  const verdict = verdictOf(job, rank.at);
  const of = isNumber(rank.of) ? rankOf(job, rank.of) : null;
  const rows = [
    ["what", [roleWords(job, rank.role), ": ", rich(rank.did || "nothing is known")]],
    ["at", rank.place ? el("span", { class: "place" }, rank.place) : null],
    [
      "victim of",
      of ? [nameOf(of), " ", el("button", { type: "button", onclick: () => go(rank.of) }, "Show it")] : null,
    ],
    ["cause", rank.cause ? [causeLink(data, rank.cause), rank.sure ? ` (${rank.sure})` : ""] : null],
    ["where", rank.where ? el("span", { class: "place" }, rank.where) : null],
    ["because", rank.because ? rich(rank.because) : null],
    [
      "said",
      rank.message || rank.exception ? el("code", {}, [rank.exception, rank.message].filter(Boolean).join(": ")) : null,
    ],
    ["failed", timeOf(rank, rank.failed)],
    ["ended", isNumber(rank.ended) ? `${timeOf(rank, rank.ended)}, ${endWords(rank)}` : endWords(rank)],
    ["last seen", isNumber(rank.ended) ? null : timeOf(rank, rank.seen)],
    [
      "last launch",
      rank.doing && !String(rank.place).endsWith(rank.doing) ? el("span", { class: "place" }, rank.doing) : null,
    ],
    ["collectives", collectivesOf(job, rank)],
    ["command", rank.command ? el("code", {}, rank.command) : null],
  ].filter(([, value]) => value);
  const full = verdict.cause && verdict.cause !== "none";
  return [
    el("h3", {}, capital(nameOf(rank)), isNumber(rank.pid) && isNumber(rank.rank) ? `, process ${rank.pid}` : ""),
    el(
      "dl",
      { class: "facts" },
      rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
    full
      ? el(
          "div",
          { class: "answer" },
          el("h2", {}, "WHERE"),
          el("div", {}, whereOf({ input: { kind: "job" } }, verdict, [], [])),
          el("h2", {}, "WHY"),
          el(
            "div",
            {},
            el(
              "ul",
              {},
              list(verdict.why).map((why) => el("li", {}, rich(why))),
            ),
          ),
          el("h2", {}, "FIX"),
          el("div", {}, fixOf(verdict)),
          el("h2", {}, "CONFIDENCE"),
          el("div", {}, sureOf(data, verdict)),
        )
      : rank.file
        ? missing("All of its verdict is in the job folder: ", el("code", {}, rank.file))
        : null,
  ];
}

function groupView(job, row) {
  if (row.role === "missing")
    return [
      el("h3", {}, capital(nameOfRow(job, row))),
      el("p", {}, job.missing_ranks),
      missing("Their machine was lost, or they were never started, or not under cuwhy."),
    ];
  const times = row.members.map(eventOf).filter(isNumber);
  return [
    el("h3", {}, `${nameOfRow(job, row)}: ${roleWords(job, row.role)}`),
    el("p", {}, rich(row.group.did || ""), row.group.at ? [", ", el("span", { class: "place" }, row.group.at)] : null),
    row.group.ranks ? el("p", { class: "soft" }, `ranks ${row.group.ranks}`) : null,
    times.length ? el("p", { class: "soft" }, `from ${when(Math.min(...times))} to ${when(Math.max(...times))}`) : null,
    missing("Open the row (Enter, or a click) for each of its ranks."),
  ];
}

// --- the clocks ----------------------------------------------------------------------------------------------

function clockWords(job, origin) {
  const nodes = list(job.nodes).map(object);
  const loose = nodes.filter((n) => n.loose).length;
  const unknown = nodes.filter((n) => !n.known).length;
  const bounds = nodes.filter((n) => n.known && !n.loose && n.apart > 0).map((n) => n.apart);
  const widest = bounds.reduce((a, b) => Math.max(a, b), 0);
  return [
    el(
      "p",
      { class: "soft" },
      origin ? `0 is when ${origin.words}. ` : "",
      nodes.length > 1 ? "Times are by the clock of one machine. " : "",
      bounds.length
        ? `How far ${many(bounds.length, "other clock is", "other clocks are")} off is known from shared ` +
            `collectives to within ${seconds(widest / 1e6)}` +
            `${bounds.length > 1 ? " or less" : ""}; a bracket above a mark shows it where it can be seen.`
        : "",
    ),
    loose
      ? missing(
          `${many(loose, "machine shares", "machines share")} no collective with it: ` +
            "their ranks cannot be ordered by time. " +
            "Their dashed rows are where wall clocks put them, which proves nothing.",
        )
      : null,
    unknown ? missing(`Of ${many(unknown, "source")}, no time is known.`) : null,
  ];
}

function legendOf(job) {
  const roles = new Set(list(job.groups).map((g) => object(g).role));
  return el(
    "ul",
    { class: "legend" },
    ["first", "failed", "victim", "fine"]
      .filter((role) => roles.has(role))
      .map((role) =>
        el(
          "li",
          {},
          svg("svg", { class: "sign", "aria-hidden": "true", width: 18, height: 18 }, markOf(role, 9, 9, COLOR[role])),
          roleWords(job, role),
        ),
      ),
    roles.has("open") ? el("li", {}, el("b", {}, "?"), " its last sign, no end") : null,
    isOpenQuestion(job) && list(job.first).length > 1
      ? el(
          "li",
          {},
          el("span", { class: "swatch", css: { background: "var(--warn)", opacity: 0.4 } }),
          "which was first is not known",
        )
      : null,
  );
}

// --- the panel -----------------------------------------------------------------------------------------------

export function ranksPanel(data, process, device, live) {
  const job = object(data.job);
  const { ranks, rows } = topRows(job);
  if (!rows.length) return missing("No rank left a file that could be read.");
  const origin = originOf(job, ranks);
  if (origin) {
    shift(ranks, origin.zero);
    origin.from -= origin.zero;
    origin.to -= origin.zero;
  }
  const views = viewsOf(ranks, origin) || { near: [0, 1e6], whole: [0, 1e6] };
  const state = { view: views.near, open: new Set(), words: "", on: null, shown: [] };
  const id = unique("rank");
  const tree = el("div", {
    class: "ranks",
    role: "tree",
    tabindex: 0,
    "aria-label": "Ranks; arrow keys move, Enter opens a group",
  });
  const inner = el("div", { class: "inner", role: "presentation" });
  const axis = el("div", { class: "axis" });
  const said = el("div", { class: "chosen", role: "region", "aria-live": "polite", "aria-label": "The chosen rank" });
  tree.append(inner);

  const height = () => (narrow.matches ? 50 : 28);
  const matches = (rank) =>
    !state.words ||
    [
      isNumber(rank.rank) ? `rank ${rank.rank}` : "",
      rank.machine.name,
      rank.did,
      rank.place,
      rank.cause,
      rank.message,
      String(rank.rank),
    ]
      .filter(Boolean)
      .some((text, i, all) => (i === all.length - 1 ? text === state.words : text.toLowerCase().includes(state.words)));

  // All rows, those of open groups included.
  function flatten() {
    const out = [];
    for (const row of rows) {
      const members = row.members.filter(matches);
      if (row.rank || row.role === "missing") {
        if (members.length || (row.role === "missing" && !state.words)) out.push({ ...row, key: row, level: 1 });
        continue;
      }
      if (!members.length) continue;
      const open = state.open.has(row) || Boolean(state.words);
      out.push({ ...row, key: row, level: 1, open });
      if (open)
        for (const rank of members)
          out.push({ rank, members: [rank], role: rank.role, key: rank, level: 2, parent: row });
    }
    state.shown = out;
  }

  function draw() {
    const h = height();
    inner.style.setProperty("height", state.shown.length * h + "px"); // before anything is measured
    const label = narrow.matches ? 0 : tree.clientWidth > 900 ? 330 : 230;
    const width = Math.max(120, (tree.clientWidth || 300) - label);
    const [from, to] = state.view;
    const x = (us) => MARGIN + ((us - from) / (to - from || 1)) * (width - 2 * MARGIN);
    const top = Math.max(0, Math.floor(tree.scrollTop / h) - 2);
    const end = Math.min(state.shown.length, top + Math.ceil((tree.clientHeight || 400) / h) + 5);
    const first = state.shown.findIndex((row) => origin && origin.of && row.members.some((r) => origin.of.has(r.at)));
    clear(axis).append(axisOf(state.view, width, x, origin));
    axis.style.setProperty("padding-left", label + "px");
    tree.style.setProperty("--label", label + "px");
    clear(inner);
    for (let i = top; i < end; i++) {
      const row = state.shown[i];
      const on = row.key === state.on;
      const words = wordsOfRow(job, row);
      inner.append(
        el(
          "div",
          {
            class: "rank" + (on ? " on" : "") + (row.level > 1 ? " inside" : ""),
            id: `${id}-${i}`,
            role: "treeitem",
            "aria-level": row.level,
            "aria-posinset": i + 1,
            "aria-setsize": state.shown.length,
            "aria-selected": on ? "true" : "false",
            "aria-expanded": row.group ? String(row.open) : null,
            css: { top: i * h + "px", height: h + "px" },
            onclick: () => choose(i, true),
          },
          el(
            "span",
            { class: "name", title: words },
            row.group ? el("span", { class: "turn", "aria-hidden": "true" }, row.open ? "\u25be " : "\u25b8 ") : null,
            el("b", {}, nameOfRow(job, row)),
            el("small", {}, " " + words),
          ),
          strip(row, { x, width, height: narrow.matches ? 26 : h, origin, after: first >= 0 && i > first, ranks }),
        ),
      );
    }
    const at = state.shown.findIndex((row) => row.key === state.on);
    if (at >= top && at < end) tree.setAttribute("aria-activedescendant", `${id}-${at}`);
    else tree.removeAttribute("aria-activedescendant");
  }

  function refresh() {
    flatten();
    draw();
  }

  function choose(i, click) {
    const row = state.shown[Math.max(0, Math.min(i, state.shown.length - 1))];
    if (!row) return;
    state.on = row.key;
    if (click && row.group) toggle(row);
    const at = state.shown.findIndex((r) => r.key === row.key);
    const h = height();
    if (at * h < tree.scrollTop) tree.scrollTop = at * h;
    if ((at + 1) * h > tree.scrollTop + tree.clientHeight) tree.scrollTop = (at + 1) * h - tree.clientHeight;
    clear(said).append(...(row.rank ? rankView(data, row.rank, go) : groupView(job, row)).flat().filter(Boolean));
    showMore(said);
    draw();
  }

  function toggle(row) {
    if (state.open.has(row.key)) state.open.delete(row.key);
    else state.open.add(row.key);
    flatten();
  }

  // To a rank, wherever it is folded in.
  function go(at) {
    const find = () => state.shown.findIndex((row) => row.rank && row.rank.at === at);
    if (find() < 0) {
      const around = rows.find((row) => row.group && row.members.some((r) => r.at === at));
      if (around) state.open.add(around);
      state.words = "";
      search.value = "";
      flatten();
    }
    if (find() >= 0) choose(find(), false);
    tree.focus();
  }

  function zoom(by) {
    const [from, to] = state.view;
    const middle = origin ? origin.from : (from + to) / 2;
    const inside = middle >= from && middle <= to ? middle : (from + to) / 2;
    const span = Math.max((to - from) * by, 10);
    state.view = [
      Math.max(inside - (inside - from) * by, views.whole[0]),
      Math.min(inside + (to - inside) * by, views.whole[1]),
    ];
    if (state.view[1] - state.view[0] < span / 2) state.view = [inside - span / 2, inside + span / 2];
    draw();
  }

  const show = (view) => {
    state.view = view;
    draw();
  };
  const search = el("input", {
    type: "search",
    placeholder: "rank, machine or words",
    "aria-label": "Show only ranks with these words",
    oninput: (e) => {
      state.words = e.target.value.trim().toLowerCase();
      tree.scrollTop = 0;
      refresh();
    },
  });
  tree.addEventListener("scroll", draw);
  tree.addEventListener("keydown", (e) => {
    const at = state.shown.findIndex((row) => row.key === state.on);
    const row = state.shown[at];
    const page = Math.max(1, Math.floor(tree.clientHeight / height()) - 1);
    const to = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(at - 1, 0),
      Home: 0,
      End: state.shown.length - 1,
      PageDown: at + page,
      PageUp: Math.max(at - page, 0),
    }[e.key];
    if (to !== undefined) choose(to, false);
    else if (e.key === "+" || e.key === "=") zoom(0.5);
    else if (e.key === "-") zoom(2);
    else if (e.key === "0") show(views.whole);
    else if (
      row &&
      row.group &&
      (e.key === "Enter" || e.key === " " || ((e.key === "ArrowRight") !== row.open && e.key.startsWith("Arrow")))
    )
      choose(at, true);
    else if (row && row.parent && e.key === "ArrowLeft")
      choose(
        state.shown.findIndex((r) => r.key === row.parent),
        false,
      );
    else return;
    e.preventDefault();
  });
  if (globalThis.ResizeObserver) new ResizeObserver(draw).observe(tree);

  live.later(() => {
    flatten();
    const start = state.shown.findIndex((row) => row.role === "first");
    choose(start < 0 ? 0 : start, false);
  });
  return [
    clockWords(job, origin),
    el(
      "div",
      { class: "tools" },
      ranks.length > 8 ? search : null,
      views.near[0] > views.whole[0] || views.near[1] < views.whole[1]
        ? [
            el("button", { type: "button", onclick: () => show(views.near) }, "Around the failure"),
            el("button", { type: "button", onclick: () => show(views.whole) }, "The whole run"),
          ]
        : null,
      el("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoom(0.5) }, "+"),
      el("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoom(2) }, "\u2212"),
    ),
    axis,
    tree,
    legendOf(job),
    said,
  ];
}
