// SPDX-License-Identifier: Apache-2.0
// What each cause on this page means, and links to it: what `cuwhy explain CAUSE` says, for where there is no cuwhy.
import { commandBox, el, rich } from "./dom.js";
import { list } from "./format.js";

const idOf = (cause) => "cause-" + cause;

// The name of a cause; a link, if the page explains it.
export function causeLink(data, cause) {
  const known = list(data.causes).some((c) => c.id === cause);
  const name = el("code", { class: "whole" }, cause);
  if (!known) return name;
  const open = () => document.getElementById(idOf(cause)).setAttribute("open", "");
  return el("a", { href: "#" + idOf(cause), title: "what this cause means", onclick: open }, name);
}

// Lines are wrapped in the text; a blank one ends a paragraph, and one that begins with a name is an item.
function prose(text) {
  return String(text || "")
    .trim()
    .split(/\n\s*\n/)
    .flatMap((paragraph) => paragraph.split(/\n(?=[`-])/))
    .filter((paragraph) => paragraph.trim())
    .map((paragraph) => el("p", {}, rich(paragraph.replace(/\s+/g, " "))));
}

const section = (title, body) => (body && body.length ? [el("h3", {}, title), body] : null);

function explanation(data, cause, open) {
  const linked = (text) =>
    prose(text).map((p) => {
      // other causes are named in backticks
      for (const code of p.querySelectorAll("code"))
        if (list(data.causes).some((c) => c.id === code.textContent))
          code.replaceWith(causeLink(data, code.textContent));
      return p;
    });
  return el(
    "details",
    { id: idOf(cause.id), class: "cause", open: open || null },
    el("summary", {}, el("code", {}, cause.id), " ", cause.title),
    linked(cause.definition),
    section(
      "How it is recognized",
      list(cause.reasons).length
        ? [
            el(
              "ul",
              {},
              cause.reasons.map((r) => el("li", {}, el("b", {}, r.certainty), ": ", rich(r.because))),
            ),
          ]
        : null,
    ),
    section(
      "What to try",
      list(cause.fix).length
        ? [
            el(
              "ol",
              {},
              cause.fix.map((fix) => el("li", {}, rich(fix.text), fix.command ? commandBox(fix.command) : null)),
            ),
          ]
        : null,
    ),
    section("What would settle it", prose(cause.settle)),
    section("Not to be confused with", linked(cause.confused)),
  );
}

// Null if the page names no cause.
export function causesPanel(data) {
  const causes = list(data.causes).filter((c) => c && c.id);
  if (!causes.length) return null;
  return [
    el(
      "p",
      { class: "soft" },
      "In general, with the figures of a sample machine; what holds for this run is at the top.",
    ),
    causes.map((cause, i) => explanation(data, cause, i === 0 && causes.length === 1)),
  ];
}
