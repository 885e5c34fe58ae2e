#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report page in a real browser: run.py BUILD [--keep FOLDER] [--jobs].

Every panel must be there and be drawn or say what is missing; nothing may come from the network, nothing in a recording
may run; keys do what the mouse does; the page is small and opens fast. --keep leaves pages and screenshots.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import axe  # noqa: E402
import pages as making  # noqa: E402
from driver import Browser  # noqa: E402

# the panels that a page always has; "what-if" is there only if memory can be played back
PANELS = ("fault", "timeline", "ledger", "map", "lines", "launches", "errors", "processes", "environment")
# panels that must have something to show, by page
DRAWN = {
    "fault": "fault ledger map lines launches errors processes environment",
    "oom": "ledger map lines errors processes environment",
    "gaps": "what-if ledger lines errors processes environment",
    "train": "timeline ledger map lines errors processes environment",
    "growth": "timeline ledger map lines errors processes environment",
    "totals": "timeline ledger map lines errors processes environment",
    "refused": "fault errors processes environment",
    "ranks": "fault ledger lines launches errors processes environment",
    "hostile": "fault ledger lines launches errors processes environment",
    "many": "fault timeline ledger map lines launches errors processes environment",
    "hang": "fault launches processes environment",
    "handled": "errors processes environment",
    "dump": "fault environment",
    "snapshot": "timeline ledger map lines errors",
    "events": "timeline ledger map lines",
    "cut": "processes",
    "newer": "processes",
    "nomemory": "fault launches errors processes environment",
    "stacks": "fault ledger lines errors processes environment",
    "nogpu": "errors processes environment",
    "nothing": "",
    "machine": "fault ledger map lines launches errors processes environment",
    "bundle": "environment",
    "job": "ranks",
    "job-many": "ranks",
    "job-two": "ranks",
    "job-loose": "ranks",
    "job-gone": "ranks",
    "job-absent": "ranks",
}
# a bundle describes a machine: there is no run to show; a job has its ranks; without a GPU there are no kernels and no memory; without CUDA there
# is nothing
ONLY = {"bundle": ("environment", "causes"), "nogpu": ("errors", "processes", "environment", "causes"), "nothing": (),
        **{name: ("ranks",) for name in ("job-gone", "job-absent")},    # nothing on them is a cause
        **{name: ("ranks", "causes") for name in ("job", "job-many", "job-two", "job-loose")}}
BYTES_MAX = 5 << 20
LOAD_MAX_MS = 1000

passed, failures = 0, []


def check(what, true, *said):
    global passed
    if true:
        passed += 1
    else:
        failures.append(" ".join([what] + [str(s) for s in said]))


# What someone who cannot see the page, or has no mouse, needs; returns a list of what is wrong.
ACCESSIBLE = r"""
const wrong = [];
const all = (selector) => [...document.querySelectorAll(selector)];
const name = (e) => (e.getAttribute("aria-label") || (e.labels && e.labels.length ? e.labels[0].textContent : "") || e.textContent || "").trim();
if (document.documentElement.lang !== "en") wrong.push("no language");
for (const [selector, n] of [["main", 1], ["h1", 1], ["body header nav", 1], ["footer", 1]])
  if (all(selector).length !== n) wrong.push(selector + " is there " + all(selector).length + " times");
let level = 1;
for (const h of all("main h1, main h2, main h3")) {
  const is = +h.tagName[1];
  if (is > level + 1) wrong.push("heading " + h.textContent + " skips a level");
  level = is;
}
for (const s of all("section")) if (!document.getElementById(s.getAttribute("aria-labelledby"))) wrong.push("a section without a name");
for (const e of all("button, select, input, a, [tabindex], [role=img], [role=group]")) if (e.id !== "main" && !name(e)) wrong.push("no name: " + e.outerHTML.slice(0, 80));
for (const e of all("[tabindex]")) if (e.tabIndex > 0) wrong.push("an order of its own: " + e.outerHTML.slice(0, 80));
for (const t of all("table:not(.u-legend)")) {
  if (!t.querySelector("thead th")) wrong.push("a table without heads");
  for (const h of t.querySelectorAll("thead th")) if (h.scope !== "col") wrong.push("a head without a scope: " + h.textContent);
}
for (const c of all("canvas")) if (!c.closest("[role=img], [role=group]")) wrong.push("a canvas without words");
for (const a of all("nav a")) if (!document.querySelector(a.getAttribute("href"))) wrong.push("a link to nowhere: " + a.textContent);
const ids = all("[id]").map((e) => e.id);
if (new Set(ids).size !== ids.length) wrong.push("an id twice");
return wrong;
"""

# Contrast of text colors, WCAG 2: at least 4.5 to 1.
CONTRAST = r"""
const style = getComputedStyle(document.documentElement);
const rgb = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16) / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const light = (name) => rgb(name).reduce((a, c, i) => a + c * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
const wrong = [];
for (const back of ["--bg", "--panel", "--code"])
  for (const ink of ["--ink", "--soft", "--accent", "--bad", "--warn", "--good"])
    if (ratio(ink, back) < 4.5) wrong.push(`${ink} on ${back}: ${ratio(ink, back).toFixed(2)}`);
if (ratio("--warn", "--warn-soft") < 4.5) wrong.push("notices");
if (ratio("--ink", "--mark") < 4.5) wrong.push("the marked line");
return wrong;
"""

SAFE = r"""
return {
  ran: document.documentElement.dataset.ran || null,
  scripts: document.scripts.length,
  strange: document.querySelectorAll("img, iframe, object, embed, form, link, base, video, audio").length,
  loaded: performance.getEntriesByType("resource").map((r) => r.name),
  policy: !!document.querySelector("meta[http-equiv=Content-Security-Policy]"),
};
"""

PANEL = r"""
const s = document.getElementById(arguments[0]);
return s && { title: s.querySelector("h2").textContent, text: s.textContent, empty: s.classList.contains("empty"), failed: s.textContent.includes("could not be drawn") };
"""

# Words of the drawing of the address that lie on each other, or outside of it; and whether the access is there.
OVERPRINTED = r"""
const wrong = [];
for (const map of document.querySelectorAll("#fault .address")) {
  const frame = map.getBoundingClientRect();
  const words = [...map.querySelectorAll("li > :last-child")].map((e) => [e.textContent, e.getBoundingClientRect()]);
  if (!words.some(([text]) => text.includes("the access"))) wrong.push("no access");
  words.forEach(([text, r], i) => {
    if (r.right > Math.min(frame.right, innerWidth) + 1 || r.left < frame.left) wrong.push("out of sight: " + text);
    if (i && r.top < words[i - 1][1].bottom - 1) wrong.push("on top of another: " + text);
  });
}
if (!document.querySelector("#fault .address") && document.querySelector("#fault:not(.empty) dl")) wrong.push("no drawing");
return wrong;
"""

# Places that hide something without a cue, and cues for nothing.
SCROLLS = r"""
return [...document.querySelectorAll(".scroll, .source, .top nav")].filter((s) => s.checkVisibility()).filter((s) => {
  const right = s.scrollWidth - s.clientWidth - s.scrollLeft > 2, below = s.scrollHeight - s.clientHeight - s.scrollTop > 2;
  const words = s.matches(".scroll") && s.nextElementSibling && s.nextElementSibling.matches(".more") ? s.nextElementSibling.textContent : null;
  return s.classList.contains("more-right") !== right || (!s.matches("nav") && s.classList.contains("more-below") !== below) || (words !== null && (words !== "") !== (right || below));
}).map((s) => s.getAttribute("aria-label"));
"""

# Numbers and names in tables that go over more than one line, although nothing but them would fit into a line of their own.
BROKEN = r"""
const broken = [];
for (const cell of document.querySelectorAll("main table:not(.u-legend) th, main table:not(.u-legend) td")) {
  if (!cell.checkVisibility()) continue;
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (const found of node.data.matchAll(/[\w.:]+/g)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      if (found[0].length <= 40 && new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) broken.push(found[0]);
    }
}
return broken;
"""

# Numbers whose unit is on another line: the text of the page as one string, with the place of each of its characters.
TORN = r"""
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), nodes = [];
let all = "";
for (let node = walk.nextNode(); node; node = walk.nextNode())
  if (!node.parentElement.closest("script, style, code, pre, .source") && node.parentElement.checkVisibility()) {
    nodes.push([all.length, node]);
    all += node.data;
  }
const boxAt = (at) => {
  const [from, node] = nodes.findLast(([start]) => start <= at), range = document.createRange();
  range.setStart(node, at - from);
  range.setEnd(node, at - from + 1);
  return range.getBoundingClientRect();
};
const torn = [];
let units = 0;
for (const found of all.matchAll(/\d\s(?=(?:%|(?:[KMGTP]i)?B|bytes?|[mn\u00b5]?s|min|h)(?!\w))/g)) {
  units++;
  if (boxAt(found.index + 2).top > boxAt(found.index).bottom - 1) torn.push(all.slice(Math.max(0, found.index - 20), found.index + 8));
}
return { torn, units };
"""

INK = r"""
const c = document.querySelector("#timeline canvas");
if (!c) return 0;
const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
let n = 0;
for (let i = 3; i < d.length; i += 4) n += d[i] > 0;
return n;
"""


def quiet(browser, name):
    said = [m["message"] for m in browser.console() if m["level"] in ("SEVERE", "WARNING")]
    check(name + ": the console is quiet", not said, said[:3])


def check_page(browser, pages, name):
    path = pages.path(name)
    check(name + ": small", os.path.getsize(path) < BYTES_MAX, os.path.getsize(path))
    browser.open(path)
    check(name + ": ready", browser.run("return document.documentElement.dataset.ready") == "yes")
    there = browser.run("return [...document.querySelectorAll('section.panel')].map((p) => p.id)")
    check(name + ": no other panels", name not in ONLY or sorted(there) == sorted(ONLY[name]), there)
    for panel in ONLY.get(name, PANELS):
        seen = browser.run(PANEL, panel)
        check("%s: panel %s" % (name, panel), seen and len(seen["text"]) > len(seen["title"]) + 10 and not seen["failed"], seen)
        if panel in DRAWN[name].split():
            check("%s: panel %s shows something" % (name, panel), seen and not seen["empty"], seen)
    if "timeline" in DRAWN[name].split():
        check(name + ": the chart has ink", browser.run(INK) > 2000)
    safe = browser.run(SAFE)
    check(name + ": nothing of the recording ran", safe == {"ran": None, "scripts": 3, "strange": 0, "loaded": [], "policy": True}, safe)
    wrong = browser.run(ACCESSIBLE)
    check(name + ": usable without eyes or mouse", not wrong, wrong[:5])
    quiet(browser, name)


def text(browser, selector):
    return browser.run("const e = document.querySelector(arguments[0]); return e ? e.textContent : ''", selector)


def check_verdicts(browser, pages):
    for name, cause, words in (("fault", "illegal-access-out-of-bounds", "WHERE"), ("oom", "oom-fragmentation", "FIX"), ("growth", "oom-growth", "WHY"),
                               ("snapshot", "oom-fragmentation", "CONFIDENCE"), ("dump", "illegal-access", "FIX"), ("newer", "illegal-access", "could not be read")):
        browser.open(pages.path(name))
        said = text(browser, "#verdict") or ""
        check(name + ": the verdict comes first", cause in said and words in said, said[:300])
    for name in ("machine", "bundle"):
        browser.open(pages.path(name))
        said = text(browser, "#environment")
        check(name + ": the checks of the doctor are in the environment", "driver-too-old" in said and "FAIL" in said and "OK" in said, said[:400])
        check(name + ": each check is a row", browser.run("return document.querySelectorAll('#environment table tbody tr').length") >= 2)
        # a line separator, which would end a line of a terminal, is a question mark in texts of others
        check(name + ": names are shown as they are", making.EVIL.replace("\u2028", "?") in said.replace("\u2028", "?"), said[:400])
    check("bundle: the verdict comes first", "driver-too-old" in text(browser, "#verdict") and "WHERE" not in text(browser, "#verdict"), text(browser, "#verdict")[:300])
    check("bundle: every fact is there", "torch.version" in text(browser, "#environment details"))
    browser.open(pages.path("newer"))
    check("newer: panels say why they are empty", "could be read" in text(browser, "#timeline"), text(browser, "#timeline"))
    browser.open(pages.path("cut"))
    check("cut: says so", "is cut short" in text(browser, "#verdict"), text(browser, "#verdict")[:300])
    check("cut: empty panels say so, too", "Parts of the recording are missing" in text(browser, "#timeline"), text(browser, "#timeline"))
    browser.open(pages.path("nomemory"))
    said = text(browser, "#verdict .notice")
    check("nomemory: says that memory is missing", "no memory tables" in said, said)
    check("nomemory: panels say so, too", "not recorded" in text(browser, "#timeline") and "not in the recording" in text(browser, "#fault"), text(browser, "#fault"))
    browser.open(pages.path("stacks"))
    said = text(browser, "#verdict .notice")
    check("stacks: says how many are missing", "stacks were not recorded: there was no room" in said and "1 threads" not in said, said)
    check("stacks: the verdict is there all the same", "illegal-access" in text(browser, "#verdict"), text(browser, "#verdict")[:300])
    browser.open(pages.recount("stacks", 132))
    said = text(browser, "#fault figcaption")
    check("stacks: more blocks than are kept are counted", "of 131 other blocks" in said, said)
    browser.open(pages.path("hang"))
    said = text(browser, "#fault")
    check("hang: where it stands, and who waits", "hang+0x" in said and "cuCtxSynchronize" in said, said)
    browser.open(pages.path("handled"))
    check("handled: what was handled before", "Handled by the program before" in text(browser, "#errors"), text(browser, "#errors"))
    browser.open(pages.path("hostile"))
    check("hostile: its name is shown as it is", making.EVIL in text(browser, "#verdict"), text(browser, "#verdict")[:300])
    browser.open(pages.path("fault"))
    check("fault: the line is among its neighbors", browser.run("return document.querySelectorAll('.source li').length") > 5)
    check("fault: that line is marked", "# <- here" in (text(browser, ".source li[aria-current]") or ""))
    check("fault: block and thread are drawn", browser.run("return document.querySelectorAll('#fault svg.cells').length") == 2)
    check("fault: blocks of PyTorch are around the address", "PyTorch blocks" in text(browser, "#fault"))
    check("fault: they are those of the moment of the launch", ":22" in text(browser, "#fault table") and ":27" not in text(browser, "#fault table"), text(browser, "#fault table"))
    check("fault: one launch is blamed", browser.run("return document.querySelectorAll('#launches tbody td b').length") == 1)
    browser.open(pages.path("oom"))
    check("oom: the bar adds up to the card", browser.run("""
        const data = JSON.parse(document.getElementById("cuwhy-data").textContent);
        const ledger = data.processes[0].detail.devices[0].ledger;
        const shown = [...document.querySelectorAll("#ledger .bar")][0].childElementCount;
        return Object.values(ledger.parts).reduce((a, b) => a + b, 0) === ledger.total && shown === Object.values(ledger.parts).filter((n) => n > 0).length;"""))


def check_answer(browser, pages):
    """The first screen: a sentence, the line and its callers, and empty panels last."""
    for name in DRAWN:
        browser.open(pages.path(name))
        title = text(browser, "h1")
        check(name + ": the title is a sentence", title and not title[0].islower(), title)
        order = browser.run("return [...document.querySelectorAll('section.panel')].map((p) => p.classList.contains('empty'))")
        check(name + ": empty panels come last", order == sorted(order), order)
        seen = browser.run("return [...document.querySelectorAll('section.panel.empty')].filter((p) => p.checkVisibility()).map((p) => p.id)")
        check(name + ": and out of sight", not seen, seen)
        links = browser.run("return [...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href').slice(1))")
        drawn = browser.run("return ['verdict', ...[...document.querySelectorAll('section.panel:not(.empty)')].map((p) => p.id)]")
        check(name + ": the navigation leads to what is drawn", links == drawn, links, drawn)
        edges = browser.run("return [...document.querySelectorAll('.source')].flatMap((s) => [s.querySelector('li'), s.querySelector('li:last-child')]).map((l) => l.lastChild.textContent)")
        check(name + ": no blank lines at the edges of code", all(line.strip() for line in edges), edges)
    browser.open(pages.path("oom"))
    check("oom: the largest piece is compared with the request", "the request was" in text(browser, "#map"), text(browser, "#map"))
    check("oom: segments have the colors of lines", ".py:" in text(browser, "#map .legend"), text(browser, "#map .legend"))
    check("oom: the certainty has its reason", "free memory is scattered between live tensors" in text(browser, "#verdict"), text(browser, "#verdict"))
    browser.open(pages.path("stacks"))
    check("stacks: reasons quote the lines that they name", "cudrv.alloc(20 << 20)" in text(browser, "#verdict .quotes code"), text(browser, "#verdict .quotes"))
    browser.open(pages.path("growth"))
    check("growth: the line to blame comes first", "block_made" in text(browser, "#verdict li[aria-current]"), text(browser, "#verdict li[aria-current]"))
    check("growth: and then the one whose request failed", "The request that failed came from here" in text(browser, "#verdict details[open]"), text(browser, "#verdict details[open]"))
    browser.open(pages.path("fault"))
    drawn = "return [...document.querySelectorAll('#fault .address .strong')].map((t) => t.textContent).join()"
    check("fault: the block that the kernel was given is marked", "4.0 TiB past its end" in browser.run(drawn), browser.run(drawn))
    for name in ("fault", "ranks", "hostile", "many"):
        for width in (1200, 600, 400):
            browser.size(width, 900)
            browser.open(pages.path(name))
            wrong = browser.run(OVERPRINTED)
            check("%s: the address is drawn, and nothing on top of anything at %d" % (name, width), not wrong, wrong)
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    quiet(browser, "answer")


def check_flame(browser, pages):
    """Memory by call stack: it adds up, the two moments and their difference, keys, and a table."""
    data = "const flame = JSON.parse(document.getElementById('cuwhy-data').textContent).processes[0].detail.devices[0].flame; const ledger = JSON.parse(document.getElementById('cuwhy-data').textContent).processes[0].detail.devices[0].ledger; "
    for name in ("train", "growth", "oom", "snapshot", "events"):
        browser.open(pages.path(name))
        check(name + ": stacks add up to what PyTorch had allocated", browser.run(data + "return flame[ledger.at === 'peak' ? 'peak' : 'now'][0] === ledger.allocated"),
              browser.run(data + "return [flame.now[0], flame.peak[0], ledger.allocated, ledger.at]"))
        check(name + ": no callee holds more than its caller", browser.run(data + """
            const sums = { now: flame.now.map(() => 0), peak: flame.peak.map(() => 0) };
            for (let i = 1; i < flame.parent.length; i++) for (const key of ["now", "peak"]) sums[key][flame.parent[i]] += flame[key][i];
            return flame.parent.every((p, i) => (i === 0 || p < i) && sums.now[i] <= flame.now[i] && sums.peak[i] <= flame.peak[i]);"""))
        check(name + ": frames are drawn inside the graph", browser.run("""
            const box = document.querySelector(".flame"), frame = box.getBoundingClientRect();
            return box.children.length > 1 && [...box.children].every((c) => { const r = c.getBoundingClientRect(); return r.left >= frame.left - 1 && r.right <= frame.right + 1 && r.bottom <= frame.bottom + 1; });"""))
    browser.open(pages.path("train"))
    chosen = "const on = document.querySelector('.flame .on'); return on && on.textContent"
    drawn = "return [...document.querySelectorAll('.flame > div')].map((d) => d.textContent + d.style.left + d.style.width).join()"
    whole = browser.run(drawn)
    browser.run("document.querySelector('.flame').focus()")
    check("flame: the root is chosen first", browser.run(chosen) == "all tensors", browser.run(chosen))
    browser.type("down")
    first = browser.run(chosen)
    check("flame: down goes to the first callee, and it is told", first != "all tensors" and first.split()[-1] in text(browser, "#flame .said") and "iB" in text(browser, "#flame .said"), first)
    for _ in range(8):
        browser.type("down")
        browser.type("right")
    deep = browser.run(chosen)
    check("flame: right goes to a neighbor", deep != first, deep)
    browser.type("enter")
    check("flame: Enter zooms", browser.run(drawn) != whole and browser.run("return document.querySelector('.flame .on').style.width") == "100%")
    for _ in range(20):
        browser.type("escape")
    check("flame: Escape goes back", browser.run(drawn) == whole)
    modes = browser.run("return [...document.querySelectorAll('#flame .tools button[aria-pressed]')].map((b) => b.textContent)")
    check("flame: two moments and the difference", modes == ["At the end", "When tensors held the most", "Difference"] or modes == ["When memory ran out", "When tensors held the most", "Difference"], modes)
    browser.run("document.querySelectorAll('#flame .tools button[aria-pressed]')[2].click()")
    check("flame: the difference is another graph", browser.run(drawn) != whole and browser.run("return document.querySelectorAll('#flame .tools button[aria-pressed=true]').length") == 1)
    check("flame: a table tells the same", ".py:" in text(browser, "#flame details table") and "difference" in text(browser, "#flame details table"))
    browser.open(pages.path("nomemory"))
    check("flame: without memory there is none", browser.run("return document.getElementById('flame') === null"))
    quiet(browser, "flame")


# What was live at the failure, else at the end, by the lives of blocks; read here once more, without the page's own code.
LIVES = r"""
const device = JSON.parse(document.getElementById("cuwhy-data").textContent).processes[0].detail.devices[0];
const blocks = device.blocks;
const packed = Uint8Array.from(atob(document.getElementById("cuwhy-islands").textContent.split("\n")[blocks.island]), (c) => c.charCodeAt(0));
return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer().then((buffer) => {
  const bytes = new Uint8Array(buffer);
  let at = 0;
  const next = () => { let n = 0, k = 1, b; do { b = bytes[at++]; n += (b & 127) * k; k *= 128; } while (b > 127); return n; };
  const column = () => Array.from({ length: blocks.n }, next);
  const [born, length, place, size, line] = [column(), column(), column(), column(), column()];
  let event = 0, y = 0, live = 0, high = 0, overlap = 0;
  const moment = blocks.failed === undefined ? blocks.events : blocks.failed;
  const taken = [];
  born.forEach((b, i) => {
    event += b;
    y += place[i] % 2 ? -(place[i] + 1) / 2 : place[i] / 2;
    high = Math.max(high, y + size[i]);
    if (event <= moment && (!length[i] || event + length[i] > moment)) {
      live += 512 * size[i];
      taken.push([y, y + size[i]]);
    }
  });
  taken.sort((a, b) => a[0] - b[0]).forEach((t, i) => { overlap += i && t[0] < taken[i - 1][1]; });
  return { live, now: device.flame.now[0], read: at === bytes.length, fits: high * 512 <= blocks.height, overlap, lines: line.every((l) => l <= blocks.lines.length) };
});
"""


def check_blocks(browser, pages):
    """Every block over time: what is drawn adds up; keys and wheel zoom; a block says its size and line."""
    for name in ("train", "growth", "snapshot", "events", "gaps"):
        browser.open(pages.path(name))
        ready = until(browser, "const b = document.querySelector('.blocks'); return b && b.dataset.ready", lambda now: now == "yes")
        check(name + ": blocks are drawn", ready == "yes" and browser.run("const c = document.querySelector('.blocks canvas'); return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size") > 1)
        seen = browser.run(LIVES)
        check(name + ": what is live adds up to what PyTorch had", seen["live"] == seen["now"], seen)
        check(name + ": no two live ones are in one place", seen["overlap"] == 0 and seen["fits"] and seen["read"] and seen["lines"], seen)
    picture = "return document.querySelector('.blocks canvas').toDataURL()"
    browser.open(pages.path("train"))
    until(browser, "return document.querySelector('.blocks').dataset.ready", lambda now: now == "yes")
    whole = browser.run(picture)
    browser.run("document.querySelector('.blocks').focus()")
    browser.type("+")
    zoomed = until(browser, picture, lambda now: now != whole)
    check("blocks: plus zooms", zoomed != whole)
    browser.type("right")
    check("blocks: arrows move", until(browser, picture, lambda now: now != zoomed) != zoomed)
    browser.type("0")
    check("blocks: 0 shows everything", until(browser, picture, lambda now: now == whole) == whole)
    browser.type("enter")
    said = text(browser, "#blocks .said")
    check("blocks: Enter tells of the largest", "program.py:" in said and "iB" in said and "allocated at" in said, said)
    browser.type("0")
    wheel = "const c = document.querySelector('.blocks canvas'); const r = c.getBoundingClientRect(); const e = new WheelEvent('wheel', {deltaY: -240, clientX: r.left + 100, clientY: r.top + 50, bubbles: true, cancelable: true}); c.dispatchEvent(e); return e.defaultPrevented"
    check("blocks: the wheel zooms", browser.run(wheel) and until(browser, picture, lambda now: now != whole) != whole)
    browser.run("document.activeElement.blur()")
    check("blocks: but only after a click: pages must scroll", not browser.run(wheel))
    browser.run("const c = document.querySelector('.blocks canvas'); const r = c.getBoundingClientRect(); c.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + 300, clientY: r.bottom - 20, bubbles: true}))")
    check("blocks: hovering names size and line", "iB from " in text(browser, "#blocks .said") and "program.py:" in text(browser, "#blocks .said"), text(browser, "#blocks .said"))
    check("blocks: a table tells of the largest", ".py:" in text(browser, "#blocks details table"))
    for name in ("nomemory", "dump"):
        browser.open(pages.path(name))
        check(name + ": without events there are no blocks", browser.run("return document.getElementById('blocks') === null"))
    quiet(browser, "blocks")


def check_causes(browser, pages):
    """The name of a cause leads to what it means, which the page contains."""
    for name in ("fault", "oom", "bundle", "dump", "snapshot", "newer", "nogpu"):
        browser.open(pages.path(name))
        cause = browser.run("return JSON.parse(document.getElementById('cuwhy-data').textContent).verdict.cause")
        browser.click("#verdict .meta a")
        check(name + ": the cause is a link", browser.run("return location.hash") == "#cause-" + cause, browser.run("return location.hash"))
        said = text(browser, "#cause-" + cause)
        check(name + ": to an open explanation", browser.run("return document.getElementById(arguments[0]).open", "cause-" + cause) and "How it is recognized" in said and "What to try" in said, said[:200])
        check(name + ": each is explained once", browser.run("return JSON.parse(document.getElementById('cuwhy-data').textContent).causes.length") == browser.run("return document.querySelectorAll('details.cause').length"))
        dead = browser.run("return [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')).filter((h) => h[0] !== '#' || !document.getElementById(h.slice(1)))")
        check(name + ": no link leads to nowhere", not dead, dead)
    browser.open(pages.path("bundle"))
    check("bundle: the doctor's checks have links, too", browser.run("return document.querySelector('#environment table a').getAttribute('href')") == "#cause-driver-too-old")
    quiet(browser, "causes")


def check_room(browser, pages):
    """What does not fit scrolls, and says so; names stay whole."""
    for name in ("fault", "handled", "gaps", "many", "ranks", "snapshot", "bundle", "nogpu", "growth"):
        for width in (1200, 400):
            browser.size(width, 900)
            browser.open(pages.path(name))
            browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
            wrong = until(browser, SCROLLS, lambda now: not now)
            check("%s: what is out of sight has a cue at %d" % (name, width), not wrong, wrong)
            broken = browser.run(BROKEN)
            check("%s: no name is broken at %d" % (name, width), not broken, broken[:3])
            units = browser.run(TORN)
            check("%s: no number is parted from its unit at %d" % (name, width), not units["torn"] and (units["units"] or name in ("bundle", "nogpu")), units)
            check("%s: the page itself does not scroll sideways at %d" % (name, width), browser.run("return document.documentElement.scrollWidth <= innerWidth"))
    browser.size(400, 900)
    browser.open(pages.path("hostile"))
    check("hostile: a name that is too long does not make the page scroll sideways", browser.run("return document.documentElement.scrollWidth <= innerWidth"))
    browser.open(pages.path("fault"))
    cue = "return document.querySelector('#fault .scroll + .more').textContent"
    check("room: a table says that there is more", "scroll sideways" in until(browser, cue, bool), browser.run(cue))
    browser.run("const s = document.querySelector('#fault .scroll'); s.scrollLeft = s.scrollWidth")
    check("room: and stops saying so at its end", "sideways" not in until(browser, cue, lambda now: "sideways" not in now), browser.run(cue))
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    for name in ("nogpu", "nothing"):
        browser.open(pages.path(name))
        check(name + ": no notes that do not matter", browser.run("return document.querySelector('.notice') === null"), text(browser, ".notice"))
    quiet(browser, "room")


def check_keys(browser, pages):
    browser.open(pages.path("growth"))
    browser.run("document.activeElement.blur()")
    browser.type("tab", "body")
    check("keys: the first stop skips the navigation", browser.run("return document.activeElement.className") == "skip")
    browser.type("enter")
    check("keys: and goes to the verdict", browser.run("return location.hash") == "#main")
    picture = "return document.querySelector('#timeline canvas').toDataURL()"
    whole = browser.run(picture)
    browser.run("document.querySelector('#timeline .chart').focus()")
    for key in "++":
        browser.type(key)
    zoomed = browser.run(picture + ";")
    check("keys: plus zooms the chart", zoomed != whole)
    browser.type("left")
    moved = browser.run(picture)
    check("keys: arrows move it", moved != zoomed)
    browser.type("0")
    check("keys: 0 shows the whole run", browser.run(picture) == whole)
    for panel, key in (("map", "right"), ("launches", "end")):
        browser.open(pages.path("many"))
        before = text(browser, "#%s .said" % panel)
        browser.run("document.querySelector('#%s svg[tabindex]').focus()" % panel)
        browser.type(key)
        after = text(browser, "#%s .said" % panel)
        check("keys: %s tells of a piece" % panel, before != after and ".py:" in after, after)
    browser.run("document.querySelector('#lines th button').focus()")
    browser.type("enter")
    check("keys: a head sorts", browser.run("return document.querySelector('#lines th').getAttribute('aria-sort')") == "ascending")
    rows = "return document.querySelectorAll('#lines tbody tr').length"
    before = browser.run(rows)
    browser.type("line_17", "#lines input")
    check("keys: the filter filters", before > 5 and browser.run(rows) == 1, before, browser.run(rows))
    quiet(browser, "keys")


def check_kinds(browser, pages):
    """The stack by kind: at the ledger's moment it equals the ledger, and each part can be hidden."""
    picture = "return document.querySelector('#timeline canvas').toDataURL()"
    for name in ("train", "growth"):
        browser.open(pages.path(name))
        check(name + ": the last column of the chart is the ledger", browser.run("""
            const device = JSON.parse(document.getElementById("cuwhy-data").textContent).processes[0].detail.devices[0];
            const { tensors, ledger, us } = device.timeline.kinds;
            return ledger === us.length - 1 && Object.entries(device.ledger.kinds).every(([id, n]) => (tensors[id] ? tensors[id][ledger] : 0) === n);"""))
        legend = browser.run("return [...document.querySelectorAll('#timeline .stack-legend button')].map((b) => b.textContent)")
        check(name + ": the legend has a value for each part", len(legend) >= 4 and all("iB" in words or " B" in words for words in legend), legend)
        check(name + ": a table tells the same", "total" in text(browser, "#timeline details table"))
        for part in range(len(legend)):
            before = browser.run(picture)
            press = "document.querySelectorAll('#timeline .stack-legend button')[%d]" % part
            browser.run(press + ".focus()")
            browser.type("enter")
            check("%s: %s can be hidden" % (name, legend[part]), browser.run("return %s.getAttribute('aria-pressed')" % press) == "false")
            hidden = until(browser, picture, lambda now: now != before) != before
            check("%s: without %s the chart is another one" % (name, legend[part]), hidden or " 0 B" in legend[part] or "512 B" in legend[part])
            browser.type("enter")
            check("%s: %s can be shown again" % (name, legend[part]), until(browser, picture, lambda now: now == before) == before)
    check("train: kinds are told apart", all(word in " ".join(legend_of(browser, pages, "train")) for word in ("parameters", "gradients", "optimizer", "activations")))
    browser.prefer("light")
    browser.open(pages.path("train"))
    light = browser.run(picture)
    browser.prefer("dark")
    check("train: the chart follows light and dark", until(browser, picture, lambda now: now != light) != light)
    browser.prefer("light")
    browser.open(pages.path("totals"))
    said = text(browser, "#timeline")
    check("totals: without epochs the chart is of totals and says so", "not known over time" in said and "tensors" in said and not legend_of(browser, pages, "totals"), said)
    quiet(browser, "kinds")


def check_what_if(browser, pages):
    """Used and reserved under each setting: there with allocator events, and only then."""
    data = "const what = JSON.parse(document.getElementById('cuwhy-data').textContent).processes[0].detail.devices[0].what_if; "
    picture = "return document.querySelector('#what-if canvas').toDataURL()"
    browser.open(pages.path("gaps"))
    rows = browser.run("return [...document.querySelector('#what-if table').tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))")
    answers = {row[0]: row for row in rows}
    check("what-if: a row for each setting, as recorded first", rows[0][0] == "as recorded" and {"expandable_segments:True", "max_split_size_mb:128", "gpu=rtx4060"} < set(answers), rows)
    check("what-if: it runs out as recorded, and the line that asks is named", rows[0][1] in ("no", "unlikely") and "program.py:" in rows[0][6] and "asks for" in rows[0][6], rows[0])
    check("what-if: and fits with expandable segments", answers["expandable_segments:True"][1] in ("yes", "likely"), answers)
    check("what-if: a sentence says so", "With expandable_segments:True it likely fits" in text(browser, "#what-if p"), text(browser, "#what-if p"))
    check("what-if: points are few, and no peak is lost", browser.run(data + """
        return what.us.length <= 512 && what.answers.every((a) => a.reserved.length <= what.us.length && a.reserved.length === a.allocated.length
            && Math.max(...a.reserved) === a.peak_reserved && Math.max(...a.allocated) === a.peak_allocated && a.reserved.every((n, i) => n >= a.allocated[i]));"""))
    check("what-if: one that fails ends earlier", browser.run(data + "return what.answers.every((a) => (a.reserved.length === what.us.length) === a.fits)"))
    legend = browser.run("return [...document.querySelectorAll('#what-if .stack-legend button')].map((b) => b.textContent)")
    check("what-if: the legend has both values of each", len(legend) == len(rows) and all("reserved" in words and "used" in words or "run out" in words for words in legend), legend)
    chart = "document.querySelector('#what-if .u-over')"
    browser.run(chart + """.dispatchEvent(new MouseEvent("mousemove", {clientX: %s.getBoundingClientRect().left + 60, clientY: 10, bubbles: true}))""" % chart)
    hovered = until(browser, "return [...document.querySelectorAll('#what-if .stack-legend button')].map((b) => b.textContent)", lambda now: now != legend)
    check("what-if: hovering tells other values", hovered != legend and all("reserved" in words for words in hovered), hovered)
    check("what-if: and the moment", "after the start" in text(browser, "#what-if .stack-legend p"), text(browser, "#what-if .stack-legend p"))
    before = browser.run(picture)
    press = "document.querySelectorAll('#what-if .stack-legend button')[0]"
    browser.run(press + ".focus()")
    browser.type("enter")
    check("what-if: a setting can be hidden", browser.run("return %s.getAttribute('aria-pressed')" % press) == "false" and until(browser, picture, lambda now: now != before) != before)
    browser.run("document.querySelector('#what-if .chart').focus()")
    before = browser.run(picture)
    browser.type("+")
    check("what-if: plus zooms the chart", until(browser, picture, lambda now: now != before) != before)
    heads = browser.run("return [...document.querySelectorAll('#what-if details th[scope=col]')].map((h) => h.textContent)")
    check("what-if: a table tells the same", len(heads) == 2 + len(rows) and "(fails)" in text(browser, "#what-if details table"), heads)
    words = browser.run("return document.querySelector('#what-if .chart').getAttribute('aria-label')")
    check("what-if: who cannot see the chart is told", "ran out of memory" in words and "program.py:" in words, words)
    check("what-if: what is not exact is said", "Not exact: " in text(browser, "#what-if .missing"), text(browser, "#what-if .missing"))
    browser.cdp("Emulation.setDeviceMetricsOverride", width=380, height=800, deviceScaleFactor=1, mobile=False)
    browser.open(pages.path("gaps"))
    check("what-if: a narrow screen does not scroll sideways", browser.run("return document.documentElement.scrollWidth <= innerWidth"))
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    for name in ("nomemory", "dump", "snapshot"):
        browser.open(pages.path(name))
        check(name + ": without events there is no such panel", browser.run("return document.getElementById('what-if') === null"))
    quiet(browser, "what-if")


def check_without_charts(browser, pages):
    """A build without uPlot: everything else is there, and the page says what is not."""
    for name, panel in (("growth", "timeline"), ("totals", "timeline"), ("gaps", "what-if")):
        with_them = pages.path(name)
        browser.open(with_them)
        table = browser.run("const t = document.querySelector('#%s table'); return t && t.textContent" % panel)
        browser.open(pages.without_charts(name))
        said = text(browser, "#" + panel)
        check(name + " without charts: ready", browser.run("return document.documentElement.dataset.ready") == "yes")
        check(name + " without charts: says so", "built without uPlot" in said and "could not be drawn" not in said, said)
        check(name + " without charts: nothing is drawn", browser.run("return document.querySelectorAll('.uplot, canvas').length === document.querySelectorAll('.blocks canvas').length"))
        check(name + " without charts: the table is there", panel != "what-if" or (table and table in said), said)
        for other in PANELS:
            seen = browser.run(PANEL, other)
            check("%s without charts: panel %s" % (name, other), seen and not seen["failed"], seen)
        wrong = browser.run(ACCESSIBLE)
        check(name + " without charts: usable without eyes or mouse", not wrong, wrong[:5])
    quiet(browser, "without charts")


def legend_of(browser, pages, name):
    browser.open(pages.path(name))
    return browser.run("return [...document.querySelectorAll('#timeline .stack-legend button')].map((b) => b.textContent)")


def until(browser, script, want):
    """The value, as soon as it is the wanted one: system events arrive at any time."""
    for _ in range(1200):
        got = browser.run(script)
        if want(got):
            break
        time.sleep(0.05)
    return got


def check_themes(browser, pages):
    paper = "return getComputedStyle(document.body).backgroundColor"
    browser.prefer("dark")
    browser.open(pages.path("growth"))
    dark = browser.run(paper)
    check("dark: colors can be read", not browser.run(CONTRAST), browser.run(CONTRAST))
    browser.prefer("light")
    light = until(browser, paper, lambda now: now != dark)
    check("light: colors can be read", not browser.run(CONTRAST), browser.run(CONTRAST))
    check("the page follows the system", dark != light, dark, light)
    browser.type("D", "#theme")
    check("the switch is stronger", browser.run(paper) == dark, browser.run(paper))
    quiet(browser, "themes")


def check_copy(browser, pages):
    browser.open(pages.path("oom"))
    browser.click(".command button")
    said = until(browser, "return document.querySelector('.command button').textContent", lambda now: now != "Copy")
    check("a fix can be copied", said == "Copied", said)
    quiet(browser, "copy")


def check_choices(browser, pages):
    browser.open(pages.path("ranks"))
    check("ranks: the victim is named", "victim of process" in text(browser, "#processes"), text(browser, "#processes"))
    before = text(browser, "#environment")
    browser.type("process", "main > .tools select")
    browser.run("const s = document.querySelector('main > .tools select'); s.selectedIndex = 1; s.dispatchEvent(new Event('change'))")
    check("ranks: the panels show another process", text(browser, "#environment") != before)
    check("ranks: the verdict stays", "illegal-access" in text(browser, "#verdict"))
    browser.cdp("Emulation.setDeviceMetricsOverride", width=380, height=800, deviceScaleFactor=1, mobile=False)
    for name in ("fault", "many", "snapshot", "ranks"):
        browser.open(pages.path(name))
        check(name + ": a narrow screen does not scroll sideways", browser.run("return document.documentElement.scrollWidth <= innerWidth"))
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    quiet(browser, "choices")


def rows_of(browser):
    return browser.run("return [...document.querySelectorAll('.rank')].map((r) => r.querySelector('.name').textContent)")


def check_jobs(browser, pages):
    """Ranks as rows over time: who was first, whom it hurt, who is missing, and each rank's verdict."""
    tree = "document.querySelector('.ranks')"
    browser.open(pages.path("job"))
    said = text(browser, "#verdict")
    check("job: the first rank, its line and what to do come first", "failed first" in text(browser, "h1") and "train.py:61" in said and "mask the last block" in said, said[:400])
    causes = browser.run("return [...document.querySelectorAll('details.cause')].map((e) => e.id)")
    check("job: the cause of the first rank is explained", causes[:1] == ["cause-illegal-access-out-of-bounds"], causes)
    browser.click("#verdict a[href='#cause-illegal-access-out-of-bounds']")
    check("job: its name leads there", browser.run("return location.hash") == "#cause-illegal-access-out-of-bounds" and "How it is recognized" in text(browser, "#cause-illegal-access-out-of-bounds"), browser.run("return location.hash"))
    check("job: names are shown as they are", making.EVIL.replace("\u2028", "?") in text(browser, ".chosen").replace("\u2028", "?"), text(browser, ".chosen")[:400])
    check("job: the first one is chosen, with all of its verdict", "grep -n mask" in text(browser, ".chosen"), text(browser, ".chosen")[:400])
    rows = rows_of(browser)
    check("job: each rank has a row, the first one first", len(rows) == 16 and "failed first" in rows[0] and sum("victim (of rank" in row for row in rows) == 15, rows)
    arrows = "return [...document.querySelectorAll('.rank')].filter((r) => [...r.querySelectorAll('path')].some((p) => /H.*m.*l/.test(p.getAttribute('d')))).length"
    check("job: an arrow goes to each victim", browser.run(arrows) == 15, browser.run(arrows))
    browser.run(tree + ".focus()")
    browser.type("end")
    check("job: keys choose a rank, and its answer is shown", "victim: " in text(browser, ".chosen") and "known to within" in text(browser, ".chosen"), text(browser, ".chosen"))
    browser.run("document.querySelector('.chosen button').focus()")
    browser.type("enter")
    check("job: and lead to the one to blame", "failed first" in text(browser, ".chosen"), text(browser, ".chosen"))
    browser.run("document.querySelector('.rank:nth-child(4)').click()")
    check("job: a click chooses a rank", browser.run("return document.querySelector('.rank:nth-child(4)').getAttribute('aria-selected')") == "true" and "victim: " in text(browser, ".chosen"))
    before = browser.run("return document.querySelector('.axis').textContent")
    browser.run(tree + ".focus()")
    browser.type("0")
    whole = browser.run("return document.querySelector('.axis').textContent")
    browser.type("+")
    check("job: 0 shows the whole run, plus zooms", len({before, whole, browser.run("return document.querySelector('.axis').textContent")}) == 3, before, whole)

    browser.open(pages.path("job-many"))
    rows = rows_of(browser)
    check("job-many: ranks that did the same share a row", len(rows) == 3 and "3,296 ranks" in rows[1], rows)
    browser.run(tree + ".focus()")
    browser.type("down")
    browser.type("enter")
    rows = rows_of(browser)
    check("job-many: a row opens, and only rows in sight are in the page", 10 < len(rows) < 40 and browser.run("return %s.scrollHeight" % tree) > 60000, len(rows))
    browser.type("end")
    check("job-many: the last one can be reached", "ranks" in rows_of(browser)[-1] and "was ended by signal 15" in text(browser, ".chosen"), rows_of(browser)[-1])
    browser.type("left")
    browser.type("up")
    check("job-many: and each of a group", "Rank 4095" in rows_of(browser)[-2] and "Rank 4095" in text(browser, ".chosen"), rows_of(browser)[-2])
    browser.type("rank 2048", "#ranks input")
    check("job-many: ranks can be searched for", any(row.startswith("Rank 2048 on") for row in rows_of(browser)), rows_of(browser))
    began = time.monotonic()
    for at in range(0, 60000, 3000):
        browser.run("%s.scrollTop = %d" % (tree, at))
    print("browser: job-many, 20 jumps through 4,096 ranks in %.0f ms" % ((time.monotonic() - began) * 1e3))

    browser.open(pages.path("job-two"))
    check("job-two: says that the first is not known", "first not known" in text(browser, "#verdict .meta") and "first is not known" in text(browser, "#ranks .legend"))
    check("job-two: no arrow blames one of them", browser.run(arrows) == 0)
    browser.open(pages.path("job-loose"))
    check("job-loose: clocks that nothing relates are said to be so", "cannot be ordered by time" in text(browser, "#ranks"), text(browser, "#ranks")[:400])
    browser.open(pages.path("job-gone"))
    check("job-gone: ranks without a file have a row", any("8 ranks without a file" in row for row in rows_of(browser)) and "56-63" in text(browser, "#verdict"), rows_of(browser))
    browser.open(pages.path("job-absent"))
    check("job-absent: 0 is when the others complained", "complained" in text(browser, "#ranks p") and "never came" in rows_of(browser)[0], text(browser, "#ranks p"))
    for theme in ("light", "dark"):
        browser.prefer(theme)
        browser.open(pages.path("job"))
        check("job, %s: colors can be read" % theme, not browser.run(CONTRAST), browser.run(CONTRAST))
    browser.prefer("light")
    for width in (400, 1200):
        browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for name in ("job", "job-many", "job-two"):
            browser.open(pages.path(name))
            check("%s at %d: does not scroll sideways" % (name, width), browser.run("return document.documentElement.scrollWidth <= innerWidth"))
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    quiet(browser, "jobs")


def check_axe(browser, pages):
    """Every kind of page, in light and dark, narrow and wide, with everything unfolded."""
    program = axe.source_of(pages.build)
    if not program:
        print("browser: axe-core is not checked: npm cannot download it")
        return
    for name in DRAWN:
        for scheme, width in (("light", 1200), ("dark", 400)):
            browser.prefer(scheme)
            browser.size(width, 900)
            browser.open(pages.path(name))
            browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
            if browser.run("return document.querySelector('.blocks') !== null"):
                until(browser, "return document.querySelector('.blocks').dataset.ready", lambda now: now == "yes")
            found = axe.findings(browser, program)
            check("%s: axe finds nothing serious (%s, %d)" % (name, scheme, width), not found, found)
    browser.prefer("light")
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    quiet(browser, "axe")


def check_speed(browser, pages):
    """The best of several loads: the machine may be busy."""
    for name in ("events", "many", "growth", "job-many"):
        best = 1e9
        for _ in range(6):
            browser.open(pages.path(name))
            best = min(best, browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd"))
            if best < LOAD_MAX_MS:
                break
        check(name + ": opens in under a second", best < LOAD_MAX_MS, best)
        print("browser: %-8s %4d KiB, open after %3d ms" % (name, os.path.getsize(pages.path(name)) >> 10, best))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--jobs", action="store_true", help="only the pages of jobs")
    parser.add_argument("--only", nargs="+", metavar="PART", help="only these parts: room, axe, blocks, ...")
    parser.add_argument("--keep", help="leave pages and screenshots in this folder")
    given = parser.parse_args()
    began = time.monotonic()
    with open(os.path.join(given.build, "report.html"), encoding="utf-8") as page:
        if "const uPlot = null;" in page.read():
            print("browser: the page was built without charts: 'make charts' fetches what they need")
            return 77
    folder = os.path.abspath(given.keep) if given.keep else tempfile.mkdtemp(prefix="cuwhy-pages-")
    os.makedirs(folder, exist_ok=True)
    try:
        pages = making.Pages(given.build, folder)
        names = [name for name in DRAWN if name.startswith("job") or not given.jobs]
        parts = (check_jobs,) if given.jobs else (check_verdicts, check_answer, check_causes, check_flame, check_blocks, check_room, check_kinds, check_what_if,
                                                  check_keys, check_themes, check_copy, check_choices, check_jobs, check_without_charts, check_axe, check_speed)
        if given.only:
            names, parts = [], [part for part in parts if part.__name__[len("check_"):] in given.only]
        (pages.make_jobs if given.jobs else pages.make)()
        with Browser(shutil.which("chromium"), shutil.which("chromedriver")) as browser:
            for name in names:
                check_page(browser, pages, name)
                if given.keep:
                    browser.screenshot(os.path.join(folder, name + ".png"), whole=True)
            for part in parts:
                part(browser, pages)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for failure in failures:
        print("not ok - " + failure)
    print("browser: %d passed, %d failed (%d s)" % (passed, len(failures), time.monotonic() - began))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
