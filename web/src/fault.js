// SPDX-License-Identifier: Apache-2.0
// The fault: the block and thread in the kernel's grid, and the address among the allocations around it.
import { el, missing, svg, table } from "./dom.js";
import { placeText } from "./verdict.js";
import { bytes, count, isNumber, list, many, object, stream, triple, tuple } from "./format.js";

// Draws a number of things as cells; if there are too many, a cell stands for several.
function cells(total, columns, marks, first, size, label) {
  const most = 2048;
  const each = Math.max(1, Math.ceil(total / most));
  const shown = Math.ceil(total / each);
  const wide = Math.min(columns, shown);
  const rows = Math.ceil(shown / wide);
  const drawing = svg("svg", {
    width: wide * size + 2,
    height: rows * size + 2,
    viewBox: `0 0 ${wide * size + 2} ${rows * size + 2}`,
    role: "img",
    "aria-label": label,
    class: "cells",
  });
  const marked = new Map();
  for (const mark of marks) marked.set(Math.floor(mark / each), (marked.get(Math.floor(mark / each)) || 0) + 1);
  for (let i = 0; i < shown; i++) {
    const x = (i % wide) * size + 1;
    const y = Math.floor(i / wide) * size + 1;
    const hit = marked.has(i);
    drawing.append(
      svg("rect", {
        x: x + 0.5,
        y: y + 0.5,
        width: size - 1.5,
        height: size - 1.5,
        rx: 1,
        fill: i === Math.floor(first / each) ? "var(--bad)" : hit ? "var(--hit)" : "var(--free)",
        stroke: hit ? "var(--bad)" : "var(--faint)",
        "stroke-width": 0.6,
      }),
    );
    if (i === Math.floor(first / each))
      drawing.append(
        svg("path", {
          d: `M${x + 1.5} ${y + 1.5}l${size - 3.5} ${size - 3.5}m0 ${-(size - 3.5)}l${-(size - 3.5)} ${size - 3.5}`,
          stroke: "var(--panel)",
          "stroke-width": 1.4,
          fill: "none",
        }),
      );
  }
  return { drawing, each };
}

const volume = (t) => t[0] * t[1] * t[2];
const index = (at, size) => at[0] + size[0] * (at[1] + size[1] * at[2]);
const isTriple = (t) => Array.isArray(t) && t.length === 3 && t.every((n) => isNumber(n) && n >= 0);
const inside = (at, size) => isTriple(at) && at.every((n, i) => n < size[i]);

// Only so many threads are kept individually; all are counted.
const othersOf = (known, all) =>
  all > known ? `${count(known)} of ${count(all)} other blocks` : many(known, "other block");

function grid(kernel, fault, lanes) {
  const running = list(object(fault.running).places).length > 0;
  if (!isTriple(kernel.grid) || !isTriple(kernel.block)) return missing("The size of the grid is not known.");
  if (!inside(fault.block, kernel.grid) || !inside(fault.thread, kernel.block))
    return missing("The block and the thread are not known.");
  const blocks = volume(kernel.grid);
  const threads = volume(kernel.block);
  const others = list(lanes.list).filter(
    (l) => Array.isArray(l) && inside(l.slice(0, 3), kernel.grid) && inside(l.slice(3, 6), kernel.block),
  );
  const inGrid = [index(fault.block, kernel.grid), ...others.map((l) => index(l.slice(0, 3), kernel.grid))];
  const mine = others.filter((l) => l.slice(0, 3).join() === fault.block.join());
  const inBlock = [index(fault.thread, kernel.block), ...mine.map((l) => index(l.slice(3, 6), kernel.block))];
  const wide = kernel.grid[0] > 1 && kernel.grid[0] <= 96 && kernel.grid[1] > 1 ? kernel.grid[0] : 64;
  const left = cells(
    blocks,
    wide,
    inGrid,
    inGrid[0],
    blocks <= 256 ? 11 : 8,
    `Block ${tuple(fault.block)} of a grid of ${triple(kernel.grid)}`,
  );
  const right = cells(
    threads,
    32,
    inBlock,
    inBlock[0],
    11,
    `Thread ${tuple(fault.thread)} of a block of ${triple(kernel.block)}`,
  );
  const also = new Set(inGrid).size - 1;
  return el(
    "div",
    { class: "pair" },
    el(
      "figure",
      {},
      left.drawing,
      el(
        "figcaption",
        {},
        `grid ${triple(kernel.grid)}: block `,
        el("b", {}, tuple(fault.block)),
        " is marked with a cross",
        also > 0 || lanes.blocks > 1
          ? `; ${othersOf(also, lanes.blocks - 1)} with ${running ? "running" : "faulting"} threads are filled`
          : "",
        left.each > 1 ? `; a cell is ${count(left.each)} blocks` : "",
      ),
    ),
    el(
      "figure",
      {},
      right.drawing,
      el(
        "figcaption",
        {},
        `block ${triple(kernel.block)}, one warp per row: thread `,
        el("b", {}, tuple(fault.thread)),
        " is marked with a cross",
        new Set(inBlock).size > 1
          ? `; the ${count(new Set(inBlock).size)} threads of this block that ` +
              `${running ? "were running" : "faulted"} are filled`
          : "",
      ),
    ),
  );
}

// --- the address ---------------------------------------------------------------------------------------------

const big = (text) => {
  try {
    return BigInt(text);
  } catch {
    return null;
  }
};

// The block that the kernel had a pointer to need not be among the nearest ones.
function withGiven(pieces, memory, sources) {
  if (memory.in !== "near") return pieces;
  const nameOf = (made) => placeText(object(sources.find((s) => s.file === made.file && s.line === made.line) || made));
  const words = isNumber(memory.parameter)
    ? `parameter ${memory.parameter} points here`
    : "the kernel had a pointer to this";
  const known = isNumber(memory.parameter) || isNumber(memory.parameter_byte);
  const found = memory.segment
    ? [
        [object(memory.block), true, known],
        [object(memory.segment), false, false],
      ]
    : [[object(memory.block), false, known]];
  for (const [block, torch, given] of found) {
    if (!block.address || !block.size) continue;
    let piece = pieces.find((p) => p.torch === torch && p.address === block.address);
    if (!piece)
      pieces.push(
        (piece = {
          state: "live",
          address: block.address,
          size: block.size,
          kind: "device",
          device: block.device,
          torch,
          place: nameOf(object(block.made)),
          far: true,
        }),
      );
    if (given) piece.given = words;
  }
  return pieces;
}

const madeAt = (piece, lines) => lines[piece.made] || piece.place || "";

function label(piece, lines) {
  const made = madeAt(piece, lines);
  return [
    piece.torch ? "PyTorch block" : piece.kind,
    piece.state === "freed" ? ", freed" : "",
    made ? ", " + made : "",
  ].join("");
}

// Not to scale: widths grow with the logarithm of sizes and distances.
const width = (n) => Math.max(6, Math.min(150, 6 * Math.log2(Number(n) / 256 + 2)));

// The drawing has room for a few: those that contain the address, two on each side of it, and the one that
// the kernel had a pointer to.
function nearest(pieces, address) {
  const before = pieces.filter((p) => p.to <= address).slice(-2);
  const after = pieces.filter((p) => p.from > address).slice(0, 2);
  const shown = pieces.filter(
    (p) => p.given || p.far || before.includes(p) || after.includes(p) || (p.from <= address && address < p.to),
  );
  return shown.map((p, i) => ({
    ...p,
    cut: i > 0 && (p.far || shown[i - 1].far || pieces.indexOf(p) !== pieces.indexOf(shown[i - 1]) + 1),
  }));
}

function strips(pieces, address) {
  const out = [];
  let end = null;
  for (const piece of pieces) {
    if (end !== null && piece.from > end)
      out.push({ gap: piece.from - end, from: end, to: piece.from, cut: piece.cut });
    out.push({ piece, from: piece.from, to: piece.to });
    end = end === null || piece.to > end ? piece.to : end;
  }
  if (out.length && address < out[0].from)
    out.unshift({ gap: out[0].from - address, from: address, to: out[0].from, open: true });
  if (end !== null && address >= end) out.push({ gap: address - end, from: end, to: address + 1n, open: true });
  return out;
}

function addressRow(title, pieces, address, lines) {
  const parts = strips(nearest(pieces, address), address);
  let x = 4;
  const row = svg("svg", { height: 74, role: "img" });
  const words = [];
  for (const part of parts) {
    const w = part.cut
      ? 40
      : part.gap !== undefined
        ? Math.max(26, width(part.gap))
        : Math.max(54, width(part.to - part.from));
    const holds = address >= part.from && address < part.to;
    if (part.gap === undefined) {
      const freed = part.piece.state === "freed";
      row.append(
        svg(
          "rect",
          {
            x,
            y: 26,
            width: w,
            height: 22,
            rx: 2,
            fill: freed ? "none" : part.piece.torch ? "var(--tensors)" : "var(--libs)",
            stroke: freed ? "var(--bad)" : "none",
            "stroke-dasharray": freed ? "4 3" : null,
          },
          svg("title", {}, `${part.piece.address}, ${bytes(part.piece.size)}: ${label(part.piece, lines)}`),
        ),
      );
      row.append(svg("text", { x: x + w / 2, y: 62, "text-anchor": "middle" }, bytes(part.piece.size)));
      if (part.piece.given)
        row.append(
          svg("rect", {
            x: x - 1.5,
            y: 24.5,
            width: w + 3,
            height: 25,
            rx: 3,
            fill: "none",
            stroke: "var(--ink)",
            "stroke-width": 1.5,
          }),
          svg(
            "text",
            { x: x - 1, y: 13, class: "strong" },
            part.piece.given,
            `; the access is ${distance(part.piece, address)}`,
          ),
        );
    } else {
      if (part.cut) row.append(svg("text", { x: x + w / 2, y: 41, "text-anchor": "middle" }, "\u22ef"));
      else row.append(svg("path", { d: `M${x + 2} 37h${w - 4}`, stroke: "var(--faint)", "stroke-dasharray": "2 3" }));
      if (w > 34 && !part.cut)
        row.append(svg("text", { x: x + w / 2, y: 62, "text-anchor": "middle" }, bytes(Number(part.gap))));
    }
    if (holds) {
      const at = part.open
        ? part.from === address
          ? x + 2
          : x + w - 2
        : x + 3 + (Number(address - part.from) / Number(part.to - part.from)) * (w - 6);
      row.append(
        svg("path", {
          d: `M${at} 20v32m-5 -32h10l-5 7z`,
          stroke: "var(--bad)",
          "stroke-width": 1.5,
          fill: "var(--bad)",
        }),
        svg("text", { x: Math.max(4, at - 26), y: 13, class: "bad" }, "the access"),
      );
      words.push(
        part.gap === undefined ? `inside ${label(part.piece, lines)}` : `in a gap of ${bytes(Number(part.gap))}`,
      );
    }
    x += w + 2;
  }
  row.setAttribute("viewBox", `0 0 ${Math.max(x + 40, 300)} 74`);
  row.setAttribute("width", Math.max(x + 40, 300));
  row.setAttribute(
    "aria-label",
    `${title}: ${many(pieces.length, "piece")} around the address; it is ${words.join(", ") || "outside of them"}`,
  );
  return el("div", { class: "address" }, row);
}

const distance = (p, address) =>
  address < p.from
    ? bytes(Number(p.from - address)) + " before it"
    : address < p.to
      ? `inside, at byte ${count(Number(address - p.from))}`
      : bytes(Number(address - p.to)) + " past its end";

function addressTable(pieces, address, lines) {
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": "Memory around the address" },
    el(
      "table",
      { "aria-label": "Memory around the address" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["address", "size", "what", "allocated at", "freed at", "the access is"].map((h) =>
            el("th", { scope: "col" }, h),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        pieces.map((p) =>
          el(
            "tr",
            {},
            el("th", { scope: "row", class: "mono" }, p.address),
            el("td", { class: "n" }, bytes(p.size)),
            el(
              "td",
              {},
              (p.torch ? "PyTorch block" : p.kind + (p.kind === "device" && p.device >= 0 ? " " + p.device : "")) +
                (p.state === "freed" ? " (freed)" : ""),
            ),
            el("td", {}, madeAt(p, lines), p.given ? el("div", { class: "soft" }, p.given) : null),
            el("td", {}, lines[p.freed] ? (p.after ? "after " : "") + lines[p.freed] : ""),
            el("td", {}, distance(p, address)),
          ),
        ),
      ),
    ),
  );
}

function addressView(fault, detail, kind) {
  const address = fault.address ? big(fault.address) : null;
  if (address === null) return missing("This fault has no address, or the core dump did not have it.");
  const pieces = withGiven(list(detail.neighbors), object(fault.memory), list(detail.sources))
    .map((p) => ({ ...p, from: big(p.address), to: big(p.address) + BigInt(p.size || 0) }))
    .sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0));
  if (!pieces.length)
    return missing(
      kind === "recording"
        ? "The memory around the address is not in the recording."
        : "The memory around the address is only known from a recording of 'cuwhy run'; there is none here.",
    );
  const lines = list(detail.lines);
  const driver = pieces.filter((p) => !p.torch);
  const torch = pieces.filter((p) => p.torch);
  return [
    driver.length
      ? [el("h3", {}, "The address: driver allocations"), addressRow("Driver allocations", driver, address, lines)]
      : null,
    torch.length
      ? [
          el("h3", {}, driver.length ? "PyTorch blocks inside them" : "The address: PyTorch blocks"),
          addressRow("PyTorch blocks", torch, address, lines),
        ]
      : null,
    el(
      "p",
      { class: "soft" },
      "In order of address, not to scale; dotted lines are addresses without memory" +
        (pieces.some((p) => p.far) || pieces.length > 10 ? "; at \u22ef some may be omitted." : "."),
    ),
    el(
      "details",
      { open: pieces.length <= 8 || null },
      el("summary", {}, `The ${many(pieces.length, "piece")} of memory as a table`),
      addressTable(pieces, address, lines),
    ),
  ];
}

function running(fault) {
  const run = object(fault.running);
  if (!list(run.places).length) return null;
  return [
    el("h3", {}, "Where its threads were"),
    table(
      "Where its threads were",
      ["instruction", { n: "threads" }],
      run.places.map((p) => [el("code", {}, p.pc || "not known"), { n: count(p.threads) }]),
      "narrow",
    ),
  ];
}

// Threads of the program that waited for a kernel that hangs.
function waiting(verdict) {
  const threads = list(verdict.waiting);
  if (!threads.length) return null;
  return [
    el("h3", {}, "Who waited for it"),
    table(
      "Who waited",
      ["thread", "in", { n: "for" }, "line"],
      threads.map((w) => [
        w.tid,
        [el("code", {}, w.api || "not known"), w.polls ? ", repeatedly" : ""],
        { n: isNumber(w.seconds) ? w.seconds + " s" : "" },
        w.file ? `${w.file}:${w.line}` : "not known",
      ]),
      "narrow",
    ),
  ];
}

export function faultPanel(data, process) {
  const verdict = object(data.verdict);
  const fault = object(verdict.fault);
  const kernel = object(verdict.kernel);
  const detail = object(process.detail);
  if (!verdict.fault) {
    if (list(verdict.waiting).length)
      return [
        waiting(verdict),
        missing("There is no core dump of the running GPU: where the kernel was is not known."),
      ];
    if (kernel.name)
      return [
        el(
          "dl",
          { class: "facts" },
          facts([
            ["kernel", el("code", {}, kernel.name)],
            ["grid", kernel.grid && triple(kernel.grid)],
            ["block", kernel.block && triple(kernel.block)],
            ["shared memory", isNumber(kernel.shared) ? bytes(kernel.shared) : null],
            ["stream", isNumber(kernel.stream) ? stream(kernel.stream) : null],
          ]),
        ),
        missing("The launch was rejected: none of its threads ran, so there is no block, thread or address to show."),
      ];
    return missing(
      verdict.cause === "none"
        ? "No kernel failed."
        : String(verdict.cause).startsWith("oom-")
          ? "No kernel faulted: the program ran out of memory."
          : "No kernel faulted here, or there is no GPU core dump. The driver writes a dump " +
            "when a kernel faults under 'cuwhy run' (but not with --no-core-dump, under a debugger, or with " +
            "drivers that do not support it).",
    );
  }
  const assertion = object(fault.assert);
  return [
    el(
      "dl",
      { class: "facts" },
      facts([
        ["kernel", kernel.name ? el("code", {}, kernel.name) : null],
        ["exception", fault.exception],
        [
          "access",
          fault.access
            ? `${fault.access} of ${many(fault.bytes, "byte")}${fault.space ? ", " + fault.space + " memory" : ""}`
            : null,
        ],
        ["address", fault.address ? el("code", {}, fault.address) : null],
        [
          "instruction",
          fault.instruction || fault.pc
            ? el("code", {}, [fault.instruction, fault.pc].filter(Boolean).join(" at "))
            : null,
        ],
        ["assertion", assertion.condition ? el("code", {}, assertion.condition) : assertion.one_of],
        ["in", assertion.file ? `${assertion.file}:${assertion.line}` : null],
        [
          "threads",
          fault.threads ? `${many(fault.threads, "thread")} ${fault.running ? "were running" : "faulted"}` : null,
        ],
      ]),
    ),
    el("h3", {}, "Block and thread"),
    grid(kernel, fault, object(detail.lanes)),
    running(fault),
    waiting(verdict),
    assertion.condition || assertion.one_of || list(object(fault.running).places).length
      ? null
      : addressView(fault, detail, data.input.kind),
  ];
}

function facts(pairs) {
  return pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}
