# SPDX-License-Identifier: Apache-2.0
"""Reads what others say about a fault, compute-sanitizer and the driver, and compares a verdict with it."""
import re
from collections import namedtuple

Report = namedtuple("Report", "what kernels block thread address nearest")
Nearest = namedtuple("Nearest", "side distance base size")
Assertion = namedtuple("Assertion", "file line function block thread condition")

LINE = re.compile(r"^=========(.*)$")
AT = re.compile(r"^\s+at (?:0x[0-9a-f]+ in )?(.*?)(?:\+0x[0-9a-f]+)?(?: in \S+:\d+)?$")
FRAME = re.compile(r"^\s+Device Frame:\s*(.*?)(?:\+0x[0-9a-f]+)?(?: in \S+:\d+)?(?: \[0x[0-9a-f]+\])?$")
TRIPLE = r"(\d+),\s*(\d+),\s*(\d+)"
THREAD = re.compile(r"^\s+by thread \(%s\) in block \(%s\)" % (TRIPLE, TRIPLE))
ADDRESS = re.compile(r"^\s+(?:Address|Access (?:at|to)) (0x[0-9a-f]+) is ")
NEAREST = re.compile(r"^\s+and is (?:([\d,]+) bytes )?(after|before|inside) the nearest allocation at "
                     r"(0x[0-9a-f]+) of size ([\d,]+) bytes")
ASSERT = re.compile(r"^(.*?):(\d+): (.*?): block: \[%s\], thread: \[%s\] Assertion `(.*)` failed"
                    % (TRIPLE, TRIPLE))
PAGE, SMALL_PAGE = 2 << 20, 4096


def number(text):
    return int(text.replace(",", ""))


def parse(text):
    """The reports of compute-sanitizer's memcheck that name a thread."""
    found, fields = [], None
    for line in text.splitlines():
        match = LINE.match(line)
        if not match:
            continue        # a line of the program's own
        rest = match.group(1)
        if rest[:2].strip():
            fields = {"what": rest.strip(), "kernels": [], "thread": None, "address": None,
                      "nearest": None, "block": None}
            found.append(fields)
        elif fields is not None:
            read_detail(fields, rest)
    return [Report(**f) for f in found if f["thread"]]


def read_detail(fields, text):
    match = AT.match(text) or FRAME.match(text)
    if match:
        fields["kernels"].append(match.group(1))
        return
    match = THREAD.match(text)
    if match:
        numbers = [int(n) for n in match.groups()]
        fields["thread"], fields["block"] = numbers[:3], numbers[3:]
        return
    match = ADDRESS.match(text)
    if match:
        fields["address"] = int(match.group(1), 16)
        return
    match = NEAREST.match(text)
    if match:
        distance, side, base, size = match.groups()
        fields["nearest"] = Nearest(side, number(distance or "0"), int(base, 16), number(size))


def assertions(text):
    """The lines that the driver prints about device-side asserts."""
    found = []
    for line in text.splitlines():
        match = ASSERT.match(line)
        if match:
            file, at, function = match.groups()[:3]
            numbers = [int(n) for n in match.groups()[3:9]]
            found.append(Assertion(file, int(at), function, numbers[:3], numbers[3:], match.group(10)))
    return found


def short_name(text):
    """`void at::native::<unnamed>::fill<(int)4>(float *)` and its other spellings as `fill`."""
    text = re.sub(r"^\S+:\d+:(?!:)", "", text or "")
    text = text.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    text = re.split(r"[<(]", text, maxsplit=1)[0].strip()
    return text.split(" ")[-1].split("::")[-1] if text else ""


def same_kernel(verdict, reports):
    """None when nothing can be compared."""
    names = {short_name(k) for r in reports for k in r.kernels} - {""}
    if not names:
        return None
    return short_name((verdict.get("kernel") or {}).get("name")) in names


def same_function(verdict, asserted):
    """An assert names the function that contains it: the kernel, or something that it calls."""
    names = {a.function for a in asserted}
    return True if short_name((verdict.get("kernel") or {}).get("name")) in names else None


def with_thread(verdict, listed):
    """Those of the list that are about the verdict's block and thread."""
    fault = verdict.get("fault") or {}
    return [r for r in listed if [r.block, r.thread] == [fault.get("block"), fault.get("thread")]]


def address_match(verdict, reports):
    """How well the address agrees: None when there is nothing to compare, "" when it does not.

    Addresses change from run to run. The same place in the same allocation is the same address; where
    the allocation is not known, the same place in a page is.
    """
    fault = verdict.get("fault") or {}
    known = [r for r in reports if r.address is not None]
    if not known or not fault.get("address"):
        return None
    address = int(fault["address"], 16)
    memory = fault.get("memory") or {}
    around = memory.get("segment") or memory.get("block")
    for word, fits in (("yes", lambda r: r.address == address),
                       ("yes", lambda r: same_distance(address, around, r)),
                       ("offset", lambda r: (r.address - address) % PAGE == 0),
                       ("page", lambda r: (r.address - address) % SMALL_PAGE == 0)):
        if any(fits(r) for r in known):
            return word
    return ""


def same_distance(address, around, report):
    if not around or not report.nearest:
        return False
    base, size = int(around["address"], 16), around["size"]
    return (address - base, size) == (report.address - report.nearest.base, report.nearest.size)
