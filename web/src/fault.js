// SPDX-License-Identifier: Apache-2.0
// The fault: the block and thread in the kernel's grid, and the address among the allocations around it.
import { el, missing, scroller, svg, table, unbroken } from "./dom.js";
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

// Not to scale: heights grow with the logarithm of sizes.
const height = (n) => Math.max(26, Math.min(64, 3 * Math.log2(Number(n) / 256 + 2)));

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

// From the lowest address to the highest: pieces, gaps, and the access, which splits a gap that it lies in.
function strips(pieces, address) {
  const out = [];
  let end = null;
  const access = { access: true };
  const gap = (from, to, cut) => {
    if (to > from) out.push({ gap: to - from, cut });
  };
  for (const piece of pieces) {
    if (end === null && address < piece.from) {
      out.push(access);
      gap(address, piece.from, piece.cut);
    } else if (end !== null && end <= address && address < piece.from) {
      gap(end, address, false);
      out.push(access);
      gap(address, piece.from, piece.cut);
    } else if (end !== null) {
      gap(end, piece.from, piece.cut);
    }
    out.push({ piece, holds: piece.from <= address && address < piece.to });
    end = end === null || piece.to > end ? piece.to : end;
  }
  if (end !== null && address >= end) {
    gap(end, address, false);
    out.push(access);
  }
  return out;
}

const ACCESS = "the access";

function pieceRow(piece, holds, address, lines) {
  const freed = piece.state === "freed";
  const made = madeAt(piece, lines);
  const tall = height(piece.size);
  const part = holds ? Number(address - piece.from) / Math.max(1, Number(piece.to - piece.from)) : 0;
  return el(
    "li",
    {},
    el(
      "span",
      {
        class: "bar-of" + (piece.torch ? " torch" : "") + (freed ? " freed" : "") + (piece.given ? " given" : ""),
        css: { height: tall + "px" },
        "aria-hidden": "true",
      },
      holds ? el("i", { css: { top: 100 * part + "%" } }) : null,
    ),
    el(
      "span",
      {},
      el("b", {}, bytes(piece.size)),
      ` ${piece.torch ? "PyTorch block" : piece.kind}${freed ? ", freed" : ""}`,
      made ? [", ", unbroken(made)] : null,
      piece.given
        ? el("span", { class: "strong" }, `; ${piece.given}; ${ACCESS} is ${distance(piece, address)}`)
        : null,
      holds
        ? el("span", { class: "bad" }, ` \u25c2 ${ACCESS} is inside, at byte ${count(Number(address - piece.from))}`)
        : null,
    ),
  );
}

// Downwards as addresses rise: a row never covers another, and there is room for its name at any width.
function addressMap(title, pieces, address, lines) {
  return el(
    "figure",
    {},
    el("h3", {}, title),
    el(
      "ol",
      { class: "address" },
      strips(nearest(pieces, address), address).map((part) =>
        part.piece
          ? pieceRow(part.piece, part.holds, address, lines)
          : part.access
            ? el("li", { class: "access" }, el("span", { "aria-hidden": "true" }), el("b", { class: "bad" }, ACCESS))
            : el(
                "li",
                { class: "gap" },
                el("span", { class: part.cut ? "cut" : null, "aria-hidden": "true" }, part.cut ? "\u22ee" : ""),
                el(
                  "span",
                  { class: "soft" },
                  part.cut ? "some may be omitted here" : `${bytes(Number(part.gap))} without memory`,
                ),
              ),
      ),
    ),
  );
}

const distance = (p, address) =>
  address < p.from
    ? bytes(Number(p.from - address)) + " before it"
    : address < p.to
      ? `inside, at byte ${count(Number(address - p.from))}`
      : bytes(Number(address - p.to)) + " past its end";

function addressTable(pieces, address, lines) {
  return scroller(
    "Memory around the address",
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
            el("td", {}, unbroken(madeAt(p, lines)), p.given ? el("div", { class: "soft" }, p.given) : null),
            el("td", {}, lines[p.freed] ? unbroken((p.after ? "after " : "") + lines[p.freed]) : ""),
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
    el(
      "div",
      { class: "pair" },
      driver.length ? addressMap("The address: driver allocations", driver, address, lines) : null,
      torch.length
        ? addressMap(
            driver.length ? "PyTorch blocks inside them" : "The address: PyTorch blocks",
            torch,
            address,
            lines,
          )
        : null,
    ),
    el("p", { class: "soft" }, "Downwards in order of address, not to scale."),
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
    scroller(
      "Where its threads were",
      table(
        "Where its threads were",
        ["instruction", { n: "threads" }],
        run.places.map((p) => [el("code", {}, p.pc || "not known"), { n: count(p.threads) }]),
        "narrow",
      ),
      "tall",
    ),
  ];
}

// Threads of the program that waited for a kernel that hangs.
function waiting(verdict) {
  const threads = list(verdict.waiting);
  if (!threads.length) return null;
  return [
    el("h3", {}, "Who waited for it"),
    scroller(
      "Who waited",
      table(
        "Who waited",
        ["thread", "in", { n: "for" }, "line"],
        threads.map((w) => [
          w.tid,
          [el("code", {}, w.api || "not known"), w.polls ? ", repeatedly" : ""],
          { n: isNumber(w.seconds) ? w.seconds + " s" : "" },
          w.file ? unbroken(`${w.file}:${w.line}`) : "not known",
        ]),
        "narrow",
      ),
      "tall",
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
