// SPDX-License-Identifier: Apache-2.0
// The verdict: what happened, where, why, what to do, and the confidence.
import { commandBox, copyButton, el, missing, rich, unbroken } from "./dom.js";
import { causeLink } from "./causes.js";
import { bytes, count, list, many, object, sentence, stream, triple } from "./format.js";

const SURE = {
  certain: "direct evidence, and nothing contradicts it",
  likely: "the evidence rules out the other causes considered",
  possible: "candidates, the best one first; none is proven",
};

export function placeText(line) {
  return line.file
    ? `${line.shown || line.file}:${line.line}` +
        `${line.function && line.function[0] !== "<" ? " in " + line.function + "()" : ""}`
    : "";
}

// Some lines on both sides; blank ones at the edges say nothing.
function excerpt(source, around) {
  const lines = list(source.text)
    .map((words, i) => [source.from + i, words])
    .filter(([number]) => Math.abs(number - source.line) <= around);
  const full = lines.map(([number, words]) => number === source.line || /\S/.test(words));
  return lines.slice(full.indexOf(true), full.lastIndexOf(true) + 1);
}

// A line of code with the lines around it.
export function sourceView(source, around = 4) {
  const text = list(source.text);
  if (!text.length || source.line - source.from >= text.length) {
    return source.source
      ? el(
          "div",
          { class: "source", tabindex: 0, role: "group", "aria-label": `Code at ${placeText(source) || "this line"}` },
          el("ol", {}, codeLine(source.line, source.source, true)),
        )
      : missing(`The code is not shown: ${source.unread || "it could not be read"}.`);
  }
  return el(
    "div",
    {},
    el(
      "div",
      { class: "source", tabindex: 0, role: "group", "aria-label": `Code around ${placeText(source)}` },
      el(
        "ol",
        {},
        excerpt(source, around).map(([number, words]) => codeLine(number, words, number === source.line)),
      ),
    ),
    source.changed ? missing("The file has changed since the program ran: this may not be the same line.") : null,
  );
}

function codeLine(number, words, current) {
  return el(
    "li",
    { "aria-current": current ? "true" : null },
    el("span", {}, (current ? "\u25b8 " : "") + number),
    document.createTextNode(words),
  );
}

const HERE = {
  holder: "Most of the memory was allocated here",
  asked: "The request that failed came from here:",
  noticed: "PyTorch or Python noticed it here, which is not where it started:",
  forward: "The forward line that this backward belongs to:",
  backward: "The line that called backward:",
  replay: "The line that ran the graph:",
  capture: "The capture in progress started here:",
  or: "Or here: the recording cannot tell these apart.",
  made: "The memory was allocated here:",
  freed: "\u2026 and freed here:",
  freed_after: "\u2026 and freed some time after this:",
  segment: "The allocation around the address was made here:",
  suspect: "Launched here, not waited for since:",
};

// Each line once, with the first thing there is to say about it.
function otherPlaces(sources, where) {
  const seen = new Set(where ? [`${where.shown}:${where.line}`] : []);
  return sources.filter((s) => {
    const at = `${s.shown}:${s.line}`;
    return s.role !== "where" && !seen.has(at) && seen.add(at);
  });
}

// Lines that a text names, with their code; not those that are already on the page.
function quotesOf(text, quotes, shown) {
  const names = [...new Set(String(text).match(/[^\s"'(),;`]+:\d+/g) || [])].filter(
    (name) => typeof quotes[name] === "string" && !shown.has(name),
  );
  return quoteList(names.map((name) => [names.length > 1 ? name : "", quotes[name]]));
}

const quoteList = (pairs) =>
  pairs.length
    ? el(
        "ul",
        { class: "quotes" },
        pairs.map(([name, words]) =>
          el(
            "li",
            {},
            name ? el("span", { class: "place" }, unbroken(name)) : null,
            words ? el("code", {}, words) : null,
          ),
        ),
      )
    : null;

// The code that is visible without opening anything.
function shownPlaces(sources) {
  const where = sources.find((s) => s.role === "where");
  return new Set(
    [where, ...otherPlaces(sources, where).filter(isOpen)]
      .filter(Boolean)
      .flatMap((s) =>
        (s === where ? excerpt(s, 4) : excerpt(s, 2)).concat([[s.line]]).map(([number]) => `${s.shown}:${number}`),
      ),
  );
}

const isOpen = (source) => ["suspect", "holder", "asked"].includes(source.role);

export function whereOf(data, verdict, sources, callers) {
  const where = sources.find((s) => s.role === "where");
  const at = object(verdict.where);
  const out = [];
  if (where) out.push(el("p", { class: "place" }, el("b", {}, unbroken(placeText(where)))), sourceView(where));
  else if (at.file)
    out.push(el("p", { class: "place" }, el("b", {}, unbroken(placeText(at)))), at.source ? sourceView(at) : null);
  else
    out.push(
      missing(
        data.input.kind === "dump"
          ? "A core dump has no Python lines. Run the program under 'cuwhy run': the recording ties the kernel " +
              "to the line that launched it."
          : "No Python line is known for this failure.",
      ),
    );
  if (callers.length)
    out.push(
      el(
        "div",
        { class: "called" },
        el("span", { class: "soft" }, "called at "),
        quoteList(callers.map((c) => [placeText({ ...c, file: c.shown }), c.source])),
      ),
    );
  out.push(kernelOf(verdict));
  if (at.library) out.push(missing("No line of your own code was on the stack: this one is in a library."));
  for (const source of otherPlaces(sources, where)) {
    const words = [HERE[source.role] || source.role, source.bytes ? `, ${bytes(source.bytes)} of it:` : ""];
    out.push(
      el(
        "details",
        { open: isOpen(source) || null },
        el("summary", {}, words, " ", el("span", { class: "place" }, unbroken(placeText(source)))),
        sourceView(source, 2),
      ),
    );
  }
  const stack = list(at.stack);
  if (stack.length > 1)
    out.push(
      el(
        "details",
        {},
        el("summary", {}, `The whole stack, ${many(stack.length, "frame")}, innermost first`),
        el(
          "ol",
          { class: "plain mono" },
          stack.map((frame) => el("li", {}, unbroken(placeText(frame)))),
        ),
      ),
    );
  return out;
}

function kernelOf(verdict) {
  const kernel = object(verdict.kernel);
  if (!kernel.name) return null;
  return el(
    "p",
    {},
    "kernel ",
    el("code", {}, kernel.name),
    kernel.grid
      ? ` \u2002grid ${triple(kernel.grid)} \u2002block ${triple(kernel.block)} \u2002stream ${stream(kernel.stream)}`
      : null,
  );
}

export function fixOf(verdict) {
  const fixes = list(verdict.fix);
  if (!fixes.length) return missing("No advice is known for this.");
  return el(
    "ol",
    { class: fixes.length > 1 ? null : "plain" },
    fixes.map((fix) => el("li", {}, rich(fix.text), fix.command ? commandBox(fix.command) : null)),
  );
}

export function sureOf(data, verdict) {
  const candidates = list(verdict.candidates);
  const evidence = list(verdict.evidence);
  return [
    el(
      "p",
      {},
      el("b", { title: SURE[verdict.certainty] }, verdict.certainty),
      ": ",
      rich(verdict.because || SURE[verdict.certainty] || ""),
    ),
    candidates.length > 1
      ? el(
          "p",
          {},
          "candidates: ",
          candidates.map((c, i) => [i ? ", " : "", causeLink(data, c.cause), ` (${c.certainty})`]),
        )
      : null,
    evidence.length
      ? el(
          "details",
          {},
          el("summary", {}, many(evidence.length, "piece") + " of evidence"),
          el(
            "ul",
            {},
            evidence.map((e) => el("li", {}, el("span", { class: "soft" }, e.source + ": "), rich(e.text))),
          ),
        )
      : null,
    list(verdict.unchecked).length
      ? el("p", { class: "soft" }, "could not be checked: ", list(verdict.unchecked).join(", "))
      : null,
  ];
}

function metaOf(data, verdict, process) {
  const error = object(verdict.error);
  const end = object(verdict.process);
  return el(
    "div",
    { class: "meta" },
    verdict.cause !== "none" ? el("span", { class: "tag " + verdict.certainty }, verdict.certainty) : null,
    verdict.cause !== "none" ? causeLink(data, verdict.cause) : null,
    error.code ? el("span", {}, `CUDA error ${error.code}`, error.name ? ` (${error.name})` : "") : null,
    error.api ? el("span", {}, "from ", el("code", {}, error.api)) : null,
    end.pid
      ? el("span", {}, `process ${end.pid}`, end.rank !== null && end.rank !== undefined ? `, rank ${end.rank}` : "")
      : null,
    end.signal
      ? el("span", {}, `ended by signal ${end.signal}`)
      : end.exit !== null && end.exit !== undefined
        ? el("span", {}, `exit status ${end.exit}`)
        : null,
    verdict.simulated ? el("span", { class: "tag" }, "simulated GPU") : null,
    process.started
      ? el("span", {}, new Date(process.started).toISOString().replace("T", " ").slice(0, 16) + " UTC")
      : null,
  );
}

function noneOf(data, verdict, below) {
  const notes = list(verdict.notes);
  return [
    el(
      "p",
      {},
      data.input.kind === "bundle"
        ? "The checks below show what was examined."
        : notes.length
          ? `No CUDA failure ended this program; it handled ${many(notes.length, "failure")}:`
          : below
            ? "Nothing failed here. The panels below show what was recorded."
            : "Nothing failed here, and the recording has no CUDA calls to show.",
    ),
    notes.length
      ? el(
          "ul",
          {},
          notes
            .slice(0, 16)
            .map((note) =>
              el(
                "li",
                {},
                note.title,
                " \u2002",
                el("span", { class: "place soft" }, unbroken(placeText(object(note.where)))),
              ),
            ),
        )
      : null,
  ];
}

// `below`: there are panels below it.
export function verdictPanel(data, process, below) {
  const verdict = object(data.verdict);
  const detail = object(process.detail);
  const sources = list(detail.sources);
  const none = verdict.cause === "none";
  const quotes = object(detail.quotes);
  const shown = shownPlaces(sources);
  const title = data.title
    ? data.title[0].toUpperCase() + data.title.slice(1)
    : none
      ? list(data.missing).length && !list(data.processes).some((p) => p.detail)
        ? "Nothing in this recording could be read"
        : data.input.kind === "snapshot"
          ? "No out-of-memory error in this snapshot"
          : "No CUDA failure"
      : sentence(verdict.title);
  const body = none
    ? noneOf(data, verdict, below)
    : el(
        "div",
        { class: "answer" },
        data.input.kind === "bundle"
          ? null
          : [el("h2", {}, "WHERE"), el("div", {}, whereOf(data, verdict, sources, list(detail.callers)))],
        el("h2", {}, "WHY"),
        el(
          "div",
          {},
          list(verdict.why).length
            ? el(
                "ul",
                {},
                list(verdict.why).map((why) => el("li", {}, rich(why), quotesOf(why, quotes, shown))),
              )
            : missing("The cause is not known; what is known is below."),
        ),
        el("h2", {}, "FIX"),
        el("div", {}, fixOf(verdict)),
        el("h2", {}, "CONFIDENCE"),
        el("div", {}, sureOf(data, verdict)),
      );
  return el(
    "section",
    { class: "verdict", id: "verdict", "aria-labelledby": "verdict-title" },
    el("h1", { id: "verdict-title" }, title || "cuwhy report"),
    metaOf(data, verdict, detail),
    noticeOf(data, process),
    body,
    list(data.issue).length && !none
      ? el("p", {}, copyButton(list(data.issue).join("\n") + "\n", "this answer", "Copy for an issue"))
      : null,
  );
}

function noticeOf(data, process) {
  const words = [...list(data.missing), ...list(object(process.detail).gaps)].filter(Boolean);
  const seen = [...new Set(words)];
  return seen.length
    ? el(
        "div",
        { class: "notice", role: "note" },
        el(
          "ul",
          {},
          seen.slice(0, 40).map((word) => el("li", {}, word)),
          seen.length > 40 ? el("li", {}, `and ${count(seen.length - 40)} more`) : null,
        ),
      )
    : null;
}
