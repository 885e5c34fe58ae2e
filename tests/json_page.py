# SPDX-License-Identifier: Apache-2.0
"""docs/json.md as a contract: what in an object contradicts the page.

A section of the page is an object; the rows of its table are keys, types, and whether they may be missing; a type with ? may be null. The elements of a list
have the keys of the list. A type that links to a section has the keys of that section.
"""
import os
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "json.md")
ROW = re.compile(r"^\| ((?:`[\w.]+`(?:, )?)+) \| ([^|]+) \|", re.M)
LINK = re.compile(r"\(#(\w+)\)")
TYPES = (("flag", bool), ("number", (int, float)), ("text", str), ("list", list), ("object", dict), ("null", type(None)))
OPEN = {("verdict", "facts"), ("version", "parts"), ("device", "kinds_over_time.tensors")}     # keys from elsewhere


def sections(text):
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        found[part.split("\n", 1)[0]] = {key: cell for keys, cell in ROW.findall(part) for key in re.findall(r"[\w.]+", keys)}
    found["device"] = {**found["ledger"], **found["device"]}
    return found


def load():
    with open(PAGE, encoding="utf-8") as stream:
        return sections(stream.read())


SECTIONS = load()


def fits(value, cell):
    words = set(re.findall(r"\w+", LINK.sub("", cell))) | ({"null"} if "?" in cell else set())
    kind = next(name for name, types in TYPES if isinstance(value, types))
    return kind in words or (kind == "object" and bool(LINK.search(cell)))


def of_value(value, section, path, cell):
    link = LINK.search(cell)
    if isinstance(value, list):
        for element in value if not cell.startswith("list of list") else ():
            yield from of_value(element, section, path, cell)
    elif isinstance(value, dict) and link and not any(key.startswith(path + ".") for key in SECTIONS[section]):
        yield from flaws(value, link.group(1))
    elif isinstance(value, dict) and (section, path) not in OPEN:
        yield from flaws(value, section, path + ".", link and link.group(1))


def flaws(value, section, prefix="", also=None):
    """Contradictions between an object and the rows of a section that begin with `prefix`, and those of the section `also`."""
    rows = {key[len(prefix):]: cell for key, cell in SECTIONS[section].items() if key.startswith(prefix)}
    rows = {**(SECTIONS[also] if also else {}), **{key: cell for key, cell in rows.items() if key}}
    for key, cell in rows.items():
        if "." not in key and key not in value and "optional" not in cell:
            yield "%s%s is missing" % (prefix, key)
    for key, inner in value.items():
        if key not in rows:
            yield "%s%s is not in docs/json.md, section %s" % (prefix, key, section)
        elif not fits(inner, rows[key]):
            yield "%s%s is %.40r, but %s in docs/json.md, section %s" % (prefix, key, inner, rows[key], section)
        else:
            home = section if prefix + key in SECTIONS[section] else also
            yield from of_value(inner, home, prefix + key if home == section else key, rows[key])
