// SPDX-License-Identifier: Apache-2.0
// Elements. Text goes in only as text: there is no way to pass markup to the page.
import { keepUnits } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

// What is copied as it is.
const VERBATIM = "code, pre, textarea";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [key, word] of Object.entries(value)) node.style.setProperty(key, word);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    const words = () => (node.matches(VERBATIM) ? String(child) : keepUnits(String(child)));
    node.append(child instanceof Node ? child : document.createTextNode(words()));
  }
  return node;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function clear(node) {
  node.replaceChildren();
  return node;
}

let numbers = 0;
export const unique = (word) => word + "-" + ++numbers;

// `Code` between backticks, as in cuwhy's texts.
export function rich(text) {
  const parts = String(text === null || text === undefined ? "" : text).split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

// What a panel shows instead of data.
export const missing = (...words) => el("p", { class: "missing" }, ...words);

// A path breaks after its slashes, never inside the name of a folder or a file.
const WHOLE_MAX = 48; // a longer name may have to break
export function unbroken(text) {
  const words = String(text === null || text === undefined ? "" : text).split(/(\s+)/);
  return words.map((word) =>
    /[/-]/.test(word)
      ? word
          .split(/(?<=\/)/)
          .map((part, i) => [
            i ? el("wbr", {}) : null,
            part.length <= WHOLE_MAX ? el("span", { class: "whole" }, part) : part,
          ])
      : word,
  );
}

// Settings such as "expandable_segments:True,max_split_size_mb:128" break behind their signs.
export const breakable = (text) =>
  String(text)
    .split(/(?<=[:,=])/)
    .map((part, i) => [i ? el("wbr", {}) : null, part]);

// What may be wider or higher than its place. Whether there is more to see, and where, is shown by `showMore`.
export const scroller = (label, child, more) =>
  el("div", { class: "scroll" + (more ? " " + more : ""), tabindex: 0, role: "group", "aria-label": label }, child);

const MORE = [
  ["right", "columns to the right: scroll sideways"],
  ["left", null],
  ["below", "rows below: scroll down"],
  ["above", null],
];

function tellMore(box, words) {
  const is = {
    right: box.scrollWidth - box.clientWidth - box.scrollLeft > 2,
    left: box.scrollLeft > 2,
    below: box.scrollHeight - box.clientHeight - box.scrollTop > 2,
    above: box.scrollTop > 2,
  };
  for (const [side] of MORE) box.classList.toggle("more-" + side, is[side]);
  if (words) {
    const said = MORE.filter(([side, text]) => text && is[side]).map(([, text]) => text);
    words.textContent = said.length ? "more " + said.join("; more ") : "";
  }
}

// An edge that hides something is shaded, and words below say so.
export function showMore(node) {
  const watch = new ResizeObserver((seen) => seen.forEach(({ target }) => target.tell()));
  for (const box of node.querySelectorAll(".scroll, .source, nav")) {
    const words = box.matches(".scroll") ? el("p", { class: "more", "aria-hidden": "true" }) : null;
    if (words) box.after(words);
    box.tell = () => tellMore(box, words);
    box.addEventListener("scroll", box.tell, { passive: true });
    watch.observe(box);
    if (box.firstElementChild) {
      box.firstElementChild.tell = box.tell;
      watch.observe(box.firstElementChild);
    }
  }
}

// A table with its header; cells are texts or nodes, a cell {n: …} is a number.
export function table(caption, heads, rows, more) {
  const cell = (value, tag, more) => {
    const number = value !== null && typeof value === "object" && "n" in value;
    return el(tag, { ...more, class: number ? "n" : null }, number ? value.n : value);
  };
  return el(
    "table",
    { "aria-label": caption, class: more },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((head) => cell(head, "th", { scope: "col" })),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map((row) =>
        el(
          "tr",
          {},
          row.map((value, i) => cell(value, i ? "td" : "th", i ? {} : { scope: "row" })),
        ),
      ),
    ),
  );
}

async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not allowed here: use the old way below
    }
  }
  const area = el("textarea", { readonly: true, "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export function copyButton(text, what, label = "Copy") {
  const button = el("button", { type: "button", "aria-label": `${label}: ${what}` }, label);
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text)) ? "Copied" : "Select and copy by hand";
    button.focus();
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}

// A command or code, and a button that copies it. Options do not break between their dashes.
export function commandBox(command) {
  const words = String(command)
    .split(/(\s+)/)
    .map((word) => (/^\s*$/.test(word) ? word : el("span", { class: "whole" }, word)));
  return el("div", { class: "command" }, el("pre", { tabindex: 0 }, words), copyButton(command, "this command"));
}
