// SPDX-License-Identifier: Apache-2.0
// Numbers for people, worded as on the command line.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// A number and its unit stay on one line.
export const keepUnits = (text) =>
  text.replace(/(\d) (?=(?:%|(?:[KMGTP]i)?B|bytes?|[mn\u00b5]?s|min|h)(?![\w]))/g, "$1\u00a0");

export const isNumber = (n) => typeof n === "number" && Number.isFinite(n);

export function bytes(n) {
  if (!isNumber(n)) return "not known";
  let unit = 0;
  while (Math.abs(n) >= 1024 && unit < UNITS.length - 1) {
    n /= 1024;
    unit++;
  }
  return (unit ? n.toFixed(1) : n) + "\u00a0" + UNITS[unit];
}

export const count = (n) => (isNumber(n) ? n.toLocaleString("en-US") : "not known");
export const many = (n, word, words) => count(n) + " " + (n === 1 ? word : words || word + "s");
export const percent = (part, all) =>
  all > 0
    ? (part === 0
        ? "0"
        : part > 0 && part / all < 0.0005
          ? "<\u00a00.1"
          : ((100 * part) / all).toFixed(part / all < 0.0995 ? 1 : 0)) + "\u00a0%"
    : "";

export const seconds = (s) => keepUnits(secondsOf(s));

function secondsOf(s) {
  if (!isNumber(s)) return "not known";
  const size = Math.abs(s);
  if (size >= 3600) return (s / 3600).toFixed(2) + " h";
  if (size >= 120) return (s / 60).toFixed(1) + " min";
  if (size >= 1) return s.toFixed(size >= 10 ? 1 : 2) + " s";
  if (size >= 1e-3) return (s * 1e3).toFixed(size >= 1e-2 ? 1 : 2) + " ms";
  if (size >= 1e-6) return (s * 1e6).toFixed(0) + " \u00b5s";
  return (s * 1e9).toFixed(0) + " ns";
}

// Times that are `step` apart: in one unit, with as many digits as the steps need.
const TIMES = [
  [3600, "h", 3600],
  [60, "min", 120],
  [1, "s", 1],
  [1e-3, "ms", 1e-3],
  [1e-6, "\u00b5s", 1e-6],
  [1e-9, "ns", 0],
];
export function times(all, step) {
  const most = Math.max(0, ...all.map(Math.abs));
  const [unit, name] = TIMES.find(([, , from]) => most >= from);
  const whole = (n) => Math.abs(n - Math.round(n)) < 1e-6;
  let digits = 0;
  while (digits < 6 && !whole((step / unit) * 10 ** digits)) digits++;
  return all.map((t) => (t ? `${(t / unit).toFixed(digits)}\u00a0${name}` : "0"));
}

export const stream = (n) =>
  !isNumber(n) ? "not known" : n > 4096 ? "0x\u2026" + n.toString(16).slice(-6) : String(n);
export const triple = (t) => (Array.isArray(t) ? t.join("\u00d7") : "not known");
export const tuple = (t) => (Array.isArray(t) ? "(" + t.join(", ") + ")" : "not known");
export const list = (x) => (Array.isArray(x) ? x : []);
export const object = (x) => (x && typeof x === "object" && !Array.isArray(x) ? x : {});

// A name stays lower-case: "cuBLAS", "torch.compile".
export const sentence = (s) => (typeof s === "string" && /^[a-z]+[ :,]/.test(s) ? capital(s) : s);
export const capital = (s) => s.slice(0, 1).toUpperCase() + s.slice(1);

export function moment(at) {
  return (
    { oom: "when memory ran out", peak: "when tensors held the most", end: "at the end", time: "at that time" }[at] ||
    ""
  );
}
