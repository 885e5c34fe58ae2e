// SPDX-License-Identifier: Apache-2.0
// The processes and ranks of the run, which one failed first, and the environment.
import { commandBox, el, missing, rich, scroller, table, unbroken } from "./dom.js";
import { causeLink } from "./causes.js";
import { placeText } from "./verdict.js";
import { isNumber, keepUnits, list, object, seconds } from "./format.js";

function endOf(row) {
  if (isNumber(row.signal)) return `signal ${row.signal}`;
  return isNumber(row.exit) ? `exit ${row.exit}` : "not known";
}

function whatOf(data, row, others) {
  const other = others.get(row.pid);
  if (row.unread) return "could not be read: " + row.unread;
  if (other && other.victim) return [`victim of process ${other.victim_of}: `, other.victim_because || ""];
  if (row.cause && row.cause !== "none") return [row.title, " ", causeLink(data, row.cause)];
  return row.cuda ? (row.notes ? `no failure; handled ${row.notes}` : "no CUDA failure") : "did not use CUDA";
}

export function processesPanel(data) {
  const rows = list(data.processes).filter((p) => isNumber(p.pid));
  if (!rows.length)
    return missing(
      data.input.kind === "recording"
        ? "This recording has no process."
        : `A ${data.input.kind === "dump" ? "core dump" : "memory snapshot"} does not say which process it is from.`,
    );
  const others = new Map(list(object(data.verdict).others).map((v) => [object(v.process).pid, v]));
  const first = rows.reduce((a, p) => (isNumber(p.failed_mono_us) ? Math.min(a, p.failed_mono_us) : a), Infinity);
  const after = (p) =>
    isNumber(p.failed_mono_us)
      ? p.failed_mono_us === first
        ? "first"
        : "+" + seconds((p.failed_mono_us - first) / 1e6)
      : "";
  return [
    scroller(
      "Processes",
      table(
        "Processes of the run",
        ["process", "rank", "failed", "what happened", "end", "command"],
        rows.map((p) => [
          p.pid + (p.ppid ? ` (child of ${p.ppid})` : ""),
          isNumber(p.rank) ? p.rank : "",
          after(p),
          whatOf(data, p, others),
          endOf(p),
          el("code", {}, unbroken(p.command)),
        ]),
      ),
    ),
    otherFailures(data),
  ];
}

// Failures of other processes that are not victims.
function otherFailures(data) {
  const own = list(object(data.verdict).others).filter((v) => v && !v.victim && v.cause !== "none");
  if (!own.length) return null;
  return [
    el("h3", {}, "Other failures"),
    own.map((v) =>
      el(
        "details",
        {},
        el("summary", {}, `process ${object(v.process).pid}: `, v.title),
        el("p", { class: "place" }, placeText(object(v.where))),
        el(
          "ul",
          {},
          list(v.why).map((why) => el("li", {}, rich(why))),
        ),
        el(
          "ol",
          {},
          list(v.fix).map((fix) =>
            el("li", {}, rich(fix.text), fix.command ? ["  ", el("code", {}, fix.command)] : null),
          ),
        ),
      ),
    ),
  ];
}

const STATUS = { OK: "good", WARN: "warn", FAIL: "bad", NONE: "soft", "?": "soft" };
const STATUS_WORDS = {
  OK: "fine",
  WARN: "may affect some programs",
  FAIL: "programs fail",
  NONE: "nothing is there to check",
  "?": "could not be checked",
};

// What the doctor found; a check that passed needs few words.
function checksOf(data) {
  const checks = list(object(data.verdict).checks);
  if (!checks.length) return null;
  return [
    el("h3", {}, "What the doctor says about the machine"),
    scroller(
      "The doctor's checks",
      table(
        "The doctor's checks",
        ["check", "", "what was found"],
        checks.map((c) => [
          c.label || c.id,
          el(
            "span",
            { class: "status " + (STATUS[c.status] || "soft"), title: STATUS_WORDS[c.status] || null },
            c.status,
          ),
          [
            unbroken(keepUnits(String(c.text))),
            c.cause ? [" ", causeLink(data, c.cause)] : null,
            c.command ? commandBox(c.command) : null,
          ],
        ]),
        "wraps",
      ),
      "tall",
    ),
  ];
}

function factsOf(facts) {
  if (!facts.length) return null;
  return el(
    "details",
    {},
    el("summary", {}, `All ${facts.length} facts that were used`),
    scroller(
      "Facts",
      table(
        "Facts",
        ["fact", "value"],
        facts.map(([name, value]) => [el("code", {}, name), value]),
      ),
      "tall",
    ),
  );
}

const rowsOf = (rows) =>
  el(
    "dl",
    { class: "facts" },
    rows.map(([name, value]) => [
      el("dt", {}, name),
      el("dd", { class: /path|lib|command|folder|program|PyTorch$/.test(name) ? "mono" : null }, value),
    ]),
  );

export function environmentPanel(data, process) {
  const rows = list(object(process.detail).environment);
  const checks = checksOf(data);
  if (checks)
    return [
      checks,
      rows.length ? [el("h3", {}, data.input.kind === "bundle" ? "The machine" : "The process"), rowsOf(rows)] : null,
      factsOf(list(object(process.detail).facts)),
    ];
  if (!rows.length)
    return missing(
      data.input.kind === "snapshot"
        ? "A memory snapshot says nothing about the machine."
        : "The environment was not recorded.",
    );
  return rowsOf(rows);
}
