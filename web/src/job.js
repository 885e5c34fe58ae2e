// SPDX-License-Identifier: Apache-2.0
// The answer about a job: who failed first, what proves it, what that did to the others, who is missing.
import { causeLink } from "./causes.js";
import { copyButton, el, missing, rich } from "./dom.js";
import { sureOf, fixOf, whereOf } from "./verdict.js";
import { capital, count, isNumber, list, many, object, sentence } from "./format.js";

const ROLES = {
  failed: "failed, too",
  victim: "victim",
  open: "has not ended",
  fine: "ended well",
};
const FIRST = {
  failed: "failed first",
  killed: "killed first",
  diverged: "called something else",
  absent: "never came",
  lost: "left no end",
  unknown: "complained",
};

export function roleWords(job, role) {
  if (role !== "first") return ROLES[role] || "";
  const several = isOpenQuestion(job) && ["failed", "killed"].includes(job.how);
  return several ? "one of the first" : FIRST[job.how] || "first";
}

const HOW = {
  failed: "failed by itself",
  killed: "killed",
  diverged: "called another collective",
  absent: "never came",
  lost: "left no end",
  missing: "left no file",
  unknown: "not known which",
};

const TEXTS = "did at cause sure where doing command title because exception message file".split(" ");

// The texts of a rank are numbers of words that ranks share.
export function rankOf(job, at) {
  const row = object(list(job.ranks)[at]);
  const words = list(job.words);
  const said = {};
  for (const key of TEXTS) said[key] = typeof words[row[key]] === "string" ? words[row[key]] : null;
  const node = object(list(job.nodes)[row.node]);
  return { ...row, ...said, at, place: said.at, machine: node };
}

export function nameOf(rank) {
  const on = rank.machine.name ? " on " + rank.machine.name : "";
  return (isNumber(rank.rank) ? `rank ${rank.rank}` : `process ${isNumber(rank.pid) ? rank.pid : "?"}`) + on;
}

export const verdictOf = (job, at) => object(object(list(job.verdicts).find((v) => object(v).of === at)).verdict);

export const isOpenQuestion = (job) => !job.ordered && job.how !== "none";

function firstOf(data, at, alone) {
  const job = object(data.job);
  const rank = rankOf(job, at);
  const verdict = verdictOf(job, at);
  return el(
    "div",
    {},
    el(
      "p",
      {},
      el("b", {}, capital(nameOf(rank))),
      isNumber(rank.pid) && isNumber(rank.rank) ? `, process ${rank.pid}` : "",
      ": ",
      rich(rank.did),
    ),
    rank.place ? el("p", { class: "place" }, rank.place) : null,
    rank.message ? el("p", {}, el("code", {}, `${rank.exception || "it said"}: ${rank.message}`)) : null,
    rank.cause ? el("p", {}, causeLink(data, rank.cause), rank.sure ? ` (${rank.sure})` : "") : null,
    alone && verdict.where ? whereOf({ input: { kind: "job" } }, verdict, [], []) : null,
  );
}

function othersOf(job) {
  const rest = list(job.groups).filter((g) => object(g).role !== "first");
  if (!rest.length) return null;
  return el(
    "ul",
    {},
    rest
      .slice(0, 8)
      .map((g) =>
        el(
          "li",
          {},
          el("b", {}, roleWords(job, g.role)),
          `: ${many(g.count, g.ranks ? "rank" : "process", g.ranks ? "ranks" : "processes")}`,
          g.ranks ? el("span", { class: "soft" }, ` (${shortRanges(g.ranks)})`) : null,
          ": ",
          g.did,
          g.at ? [", ", el("span", { class: "place" }, g.at)] : null,
        ),
      ),
    rest.length > 8 ? el("li", {}, `and ${many(rest.length - 8, "more group")}: the ranks are below`) : null,
  );
}

export function shortRanges(text, most = 6) {
  const parts = String(text).split(", ");
  return parts.length > most ? parts.slice(0, most).join(", ") + ", \u2026" : parts.join(", ");
}

function noticesOf(data, job) {
  const words = [
    job.damaged ? `${many(job.damaged, "file")} could not be read: partial, damaged, or not of this format` : null,
    job.foreign ? `${many(job.foreign, "file")} of another user, or links: not read` : null,
    job.older ? `${many(job.older, "file")} of earlier runs under the same job id: not counted` : null,
    job.too_many ? "there are more files than are read" : null,
    job.processes > list(job.ranks).length
      ? `${count(job.processes - list(job.ranks).length)} more ranks are counted, but not listed one by one`
      : null,
    ...list(data.missing),
  ].filter(Boolean);
  return words.length
    ? el(
        "div",
        { class: "notice", role: "note" },
        el(
          "ul",
          {},
          words.map((word) => el("li", {}, word)),
        ),
      )
    : null;
}

const attemptOf = (a) => `attempt ${a.requeue ? a.requeue + "." : ""}${a.attempt}`;

export function jobVerdict(data) {
  const job = object(data.job);
  const first = list(job.first);
  const verdict = first.length === 1 ? verdictOf(job, first[0]) : {};
  const part = (title, body) => (body ? [el("h2", {}, title), el("div", {}, body)] : null);
  const because = list(job.because);
  const shown = job.how === "lost" && job.ordered ? 1 : 4; // of a machine that is gone, one rank says it all
  return el(
    "section",
    { class: "verdict", id: "verdict", "aria-labelledby": "verdict-title" },
    el("h1", { id: "verdict-title" }, sentence(job.title) || "A job"),
    el(
      "div",
      { class: "meta" },
      HOW[job.how] ? el("span", { class: "tag" }, HOW[job.how]) : null,
      isOpenQuestion(job) ? el("span", { class: "tag possible" }, "first not known") : null,
      el("span", {}, "job ", el("code", {}, job.id || "")),
      el("span", {}, attemptOf(job)),
      el("span", {}, isNumber(job.world) ? many(job.world, "rank") : many(job.processes, "process", "processes")),
      job.machines ? el("span", {}, many(job.machines, "machine")) : null,
    ),
    noticesOf(data, job),
    el(
      "div",
      { class: "answer" },
      part(
        job.ordered ? "FIRST" : first.length > 1 ? "ONE OF" : "MAYBE",
        first.length && job.how !== "unknown"
          ? [
              first.slice(0, shown).map((at) => firstOf(data, at, first.length === 1)),
              first.length > shown ? el("p", { class: "soft" }, `and ${count(first.length - shown)} more`) : null,
            ]
          : null,
      ),
      part(
        "WHY",
        list(verdict.why).length
          ? el(
              "ul",
              {},
              list(verdict.why).map((why) => el("li", {}, rich(why))),
            )
          : null,
      ),
      part("FIX", list(verdict.fix).length ? fixOf(verdict) : null),
      part("CONFIDENCE", verdict.certainty ? sureOf(data, verdict) : null),
      part(
        "ORDER",
        because.length
          ? el(
              "ul",
              {},
              because.map((why) => el("li", {}, why)),
            )
          : isOpenQuestion(job)
            ? missing("It is not known which rank failed first.")
            : null,
      ),
      part("OTHERS", othersOf(job)),
      part(
        "GONE",
        job.missing
          ? el("p", {}, `${many(job.missing, "rank")} without a file: `, shortRanges(job.missing_ranks, 24))
          : null,
      ),
      part(
        "BEFORE",
        list(job.earlier).length
          ? el(
              "ul",
              {},
              list(job.earlier).map((a) => el("li", {}, `${attemptOf(object(a))}: `, object(a).title)),
            )
          : null,
      ),
    ),
    list(data.issue).length
      ? el("p", {}, copyButton(list(data.issue).join("\n") + "\n", "this answer for an issue", "Copy for an issue"))
      : null,
  );
}
