// SPDX-License-Identifier: Apache-2.0
// A flame graph of PyTorch's memory by call stack: when it ran out (else at the end), at the peak, and the difference.
import { clear, el, scroller, table, unbroken } from "./dom.js";
import { bytes, capital, count, isNumber, list, many, moment, object, percent } from "./format.js";

const THIN = 0.0015; // of the width: narrower ones are not drawn
const ROWS = 60; // of the table
const COLORS = 8;

// The tree with what each node is worth: bytes, or in "difference" how much changed below it, whichever direction.
function treeOf(flame, mode) {
  const nodes = list(flame.parent).map((parent, i) => ({
    i,
    parent: i ? parent : -1,
    depth: 0,
    name: list(flame.names)[flame.name[i]] || "not known",
    now: flame.now[i] || 0,
    peak: flame.peak[i] || 0,
    children: [],
  }));
  for (const node of nodes.slice(1)) {
    node.depth = nodes[node.parent].depth + 1;
    nodes[node.parent].children.push(node);
  }
  // children come after their parents
  for (const node of [...nodes].reverse()) {
    const self = (key) => node[key] - node.children.reduce((sum, c) => sum + c[key], 0);
    const below = node.children.reduce((sum, c) => sum + c.value, 0);
    node.own = { now: self("now"), peak: self("peak") };
    node.value = mode === "difference" ? Math.abs(node.own.now - node.own.peak) + below : node[mode];
    node.children.sort((a, b) => b.value - a.value);
  }
  return nodes;
}

const signed = (n) => (n > 0 ? "+" : n < 0 ? "\u2212" : "") + bytes(Math.abs(n));

function colorOf(node, mode) {
  if (mode === "difference") {
    const change = node.now - node.peak;
    return change > 0 ? "--bad" : change < 0 ? "--c0" : "--c8";
  }
  let hash = 0;
  for (const c of node.name.replace(/:\d+/, "")) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  return node.i ? "--c" + (hash % COLORS) : "--c8";
}

// Where each node is, as parts of the width, when `top` fills it.
function layout(nodes, top) {
  const shown = [];
  for (let up = top; up.i;) {
    up = nodes[up.parent];
    shown.push({ node: up, from: 0, to: 1, above: true });
  }
  const place = (node, from, to) => {
    shown.push({ node, from, to });
    let at = from;
    for (const child of node.children) {
      const wide = node.value ? ((to - from) * child.value) / node.value : 0;
      if (wide >= THIN) place(child, at, at + wide);
      at += wide;
    }
  };
  place(top, 0, 1);
  return shown;
}

function pathOf(nodes, node) {
  const path = [];
  for (let at = node; at.i; at = nodes[at.parent]) path.push(at.name);
  return path;
}

function stackTable(nodes, at) {
  const rows = nodes
    .filter((n) => n.i && (n.own.now > 0 || n.own.peak > 0))
    .sort((a, b) => Math.max(b.own.now, b.own.peak) - Math.max(a.own.now, a.own.peak));
  return el(
    "details",
    {},
    el("summary", {}, "The same as a table"),
    scroller(
      "Memory by call stack as a table",
      table(
        "Memory by call stack",
        ["stack, innermost first", { n: moment(at) }, { n: moment("peak") }, { n: "difference" }],
        rows
          .slice(0, ROWS)
          .map((n) => [
            pathOf(nodes, n).map((name, i) => [i ? el("span", { class: "soft" }, " \u2190 ") : null, unbroken(name)]),
            { n: bytes(n.own.now) },
            { n: bytes(n.own.peak) },
            { n: signed(n.own.now - n.own.peak) },
          ]),
      ),
    ),
    rows.length > ROWS ? el("p", { class: "soft" }, `${count(rows.length - ROWS)} smaller ones are omitted.`) : null,
  );
}

function words(nodes, node, mode, at) {
  const all = nodes[0];
  const of = (key, when) => `${bytes(node[key])} ${when}`;
  const figures = [of("now", moment(at)), of("peak", moment("peak")), `difference ${signed(node.now - node.peak)}`];
  const part = mode === "difference" ? "" : ` \u2014 ${percent(node[mode], all[mode])} of all tensors`;
  return `${node.name}: ${figures.join(", ")}${part}`;
}

// Null without stacks: then there is no panel.
export function flamePanel(data, process, device) {
  const flame = object(device.flame);
  const at = flame.at === "oom" ? "oom" : "end";
  if (list(flame.parent).length < 2 || !isNumber(list(flame.now)[0])) return null;
  const same = list(flame.now).every((n, i) => n === flame.peak[i]);
  const modes = [
    ["now", moment(at)],
    ["peak", moment("peak")],
    ["difference", "difference"],
  ].filter(([mode]) => (mode === "difference" ? !same : flame[mode][0] > 0));
  if (!modes.length) return null;
  const state = { mode: modes[0][0], top: 0, chosen: 0, nodes: null };
  const box = el("div", {
    class: "flame",
    tabindex: 0,
    role: "group",
    "aria-label":
      "Flame graph of memory by call stack. Arrow keys move between callers, callees and neighbors, Enter zooms in, " +
      "Escape zooms out. The same is in a table below.",
  });
  const said = el(
    "div",
    { class: "said", role: "status" },
    "Point at a line, or use the arrow keys. Enter or a click zooms in, Escape zooms out.",
  );
  const back = el("button", { type: "button", onclick: () => zoom(0) }, "Whole graph");
  const buttons = modes.map(([mode, label]) => {
    const button = el("button", { type: "button", onclick: () => show(mode) }, capital(label));
    button.mode = mode;
    return button;
  });
  let parts = new Map();

  function choose(node, tell) {
    const old = parts.get(state.chosen);
    if (old) old.classList.remove("on");
    state.chosen = node.i;
    const part = parts.get(node.i);
    if (part) part.classList.add("on");
    if (tell) said.textContent = words(state.nodes, node, state.mode, at);
  }

  function draw() {
    const top = state.nodes[state.top];
    const shown = layout(state.nodes, top);
    const deepest = shown.reduce((most, s) => Math.max(most, s.node.depth), 0);
    parts = new Map();
    clear(box).append(
      ...shown.map(({ node, from, to, above }) => {
        const part = el(
          "div",
          {
            class: above ? "above" : null,
            "aria-hidden": "true",
            css: {
              left: 100 * from + "%",
              width: 100 * (to - from) + "%",
              top: `calc(${node.depth} * var(--row))`,
              background: `color-mix(in srgb, var(${colorOf(node, state.mode)}) 38%, var(--panel))`,
            },
          },
          node.name.replace(/^\S*\//, ""), // its folder is told below
        );
        part.node = node;
        parts.set(node.i, part);
        return part;
      }),
    );
    box.style.setProperty("height", `calc(${deepest + 1} * var(--row))`);
    back.hidden = state.top === 0;
    choose(state.nodes[parts.has(state.chosen) ? state.chosen : state.top], false);
  }

  function zoom(i) {
    state.top = i;
    state.chosen = i;
    draw();
    said.textContent = words(state.nodes, state.nodes[i], state.mode, at);
  }

  function show(mode) {
    state.mode = mode;
    state.nodes = treeOf(flame, mode);
    for (const button of buttons) button.setAttribute("aria-pressed", button.mode === mode ? "true" : "false");
    draw();
  }

  const drawn = (node) => parts.has(node.i);
  const beside = (node, step) => {
    if (!node.i) return null;
    const row = state.nodes[node.parent].children.filter(drawn);
    return row[row.indexOf(node) + step];
  };
  box.addEventListener("keydown", (e) => {
    const node = state.nodes[state.chosen];
    const moves = {
      ArrowDown: () => node.children.find(drawn),
      ArrowUp: () => state.nodes[node.parent],
      ArrowLeft: () => beside(node, -1),
      ArrowRight: () => beside(node, 1),
      Home: () => state.nodes[state.top],
    };
    if (moves[e.key]) {
      const next = moves[e.key]();
      if (next) choose(next, true);
    } else if (e.key === "Enter") zoom(state.chosen);
    else if (e.key === "Escape" && state.top) zoom(state.nodes[state.top].parent);
    else return;
    e.preventDefault();
  });
  box.addEventListener("click", (e) => e.target.node && zoom(e.target.node.i));
  box.addEventListener("mousemove", (e) => e.target.node && choose(e.target.node, true));
  show(state.mode);
  return [
    el(
      "p",
      {},
      "What the tensors hold by the lines that allocated them, with callers above. ",
      same ? `Memory was at its peak ${moment(at)}: there is no difference to show.` : "",
    ),
    el("div", { class: "tools", role: "group", "aria-label": "Which moment" }, buttons, back),
    box,
    said,
    flame.left_out
      ? el(
          "p",
          { class: "soft" },
          `Omitted: ${many(flame.left_out, "frame")} with less than a thousandth of the memory.`,
        )
      : null,
    stackTable(treeOf(flame, "now"), at),
  ];
}
