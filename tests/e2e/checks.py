# SPDX-License-Identifier: Apache-2.0
"""Compares a verdict with what a case declares: the contract's keys, the cause, the lines."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import advice  # noqa: E402
import json_page  # noqa: E402

CERTAINTIES = ("certain", "likely", "possible")
BESIDE = ("backward", "forward", "capture", "replay", "asked")


def shape(result, verdict):
    for found in json_page.flaws(verdict, "verdict"):
        result.bad("contract: " + found)
    if verdict.get("schema") != 1:
        result.bad("contract: schema is %r" % verdict.get("schema"))
    if verdict.get("cause") == "none":
        return
    if verdict.get("certainty") not in CERTAINTIES:
        result.bad("contract: certainty is %r" % verdict.get("certainty"))
    ranked = verdict.get("candidates") or []
    if not ranked or ranked[0].get("cause") != verdict.get("cause"):
        result.bad("contract: the first candidate is not the cause")
    for key in ("evidence", "fix"):
        if not all(item.get("text") for item in verdict.get(key) or []):
            result.bad("contract: %s without text" % key)
    for found in advice.flaws(verdict):
        result.bad(found)


def main(result, case, verdict):
    one(result, "verdict", case.main, verdict)
    if case.main["cause"] == ["none"]:
        return
    result.line = line(result, case.marks.get("here"), verdict.get("where"), "where")
    for name in BESIDE:
        if name in case.marks:
            beside = verdict.get(name) or (verdict.get("where") or {}).get(name)
            line(result, case.marks[name], beside, name)
    for file, number in case.marks.get("culprit", ()):
        if not any(re.search(r"\b%s:%d\b" % (re.escape(file), number), why) for why in verdict.get("why") or ()):
            result.bad("why: %s:%d is not named" % (file, number))


def tensors(result, case, verdict):
    """Those of the failing function, as the header lists them."""
    found = ["%s %s %s %s" % (t["name"], t["dtype"], t["shape"], t["device"]) for t in verdict.get("tensors", ())]
    if case.tensors is not None and found != case.tensors:
        result.bad("tensors %s, expected %s" % (found, case.tensors))


def holder(result, case, verdict):
    """The object that keeps the most memory: its path and how many tensors it leads to; "used 4096", "gradient 0": bytes of that name.
    How much is used is known only if there was time for all objects."""
    found = (verdict.get("memory") or {}).get("holders") or [{"path": None, "tensors": 0}]
    got, want = "%s %d" % (found[0]["path"], found[0]["tensors"]), case.holder
    for words, name in re.findall(r"( (used|gradient) \d+)", want or ""):
        if found[0].get(name + "_bytes") is None:
            want = want.replace(words, "")
        else:
            got += " %s %d" % (name, found[0][name + "_bytes"])
    if want is not None and got != want:
        result.bad("holder %s, expected %s" % (got, want))


def reads(result, case, verdict):
    """The lines that read what a simulated GPU did not compute; a case without marks says nothing about them."""
    if "reads" not in case.marks:
        return
    found = (verdict.get("dry_run") or {}).get("unknown_reads", ())
    got = sorted((os.path.basename(r["file"]), r["line"], r["why"] == "maybe computed") for r in found)
    want = sorted((*place, place in case.marks.get("perhaps", ())) for place in case.marks["reads"])
    if got != want:
        result.bad("reads: %s, expected %s" % (got, want))


def one(result, label, want, got):
    """Compares one verdict object with one `expect` line."""
    if got.get("cause") not in want["cause"]:
        result.bad("%s: cause %s, expected %s" % (label, got.get("cause"), "|".join(want["cause"])))
        return
    if "certainty" in want and got.get("certainty") not in want["certainty"]:
        result.bad("%s: certainty %s" % (label, got.get("certainty")))
    if "code" in want and str((got.get("error") or {}).get("code")) not in want["code"]:
        result.bad("%s: error %s" % (label, got.get("error")))
    if "api" in want and (got.get("error") or {}).get("api") not in want["api"]:
        result.bad("%s: error %s" % (label, got.get("error")))
    if "kernel" in want and want["kernel"][0] not in str((got.get("kernel") or {}).get("name")):
        result.bad("%s: kernel %s" % (label, got.get("kernel")))
    for cause in want.get("candidate", ()):
        if cause not in [c.get("cause") for c in got.get("candidates") or []]:
            result.bad("%s: %s is not among the candidates" % (label, cause))
    if "victim" in want and ("yes" if got.get("victim") else "no") not in want["victim"]:
        result.bad("%s: victim %s of %s" % (label, got.get("victim"), got.get("victim_of")))
    if "function" in want and (got.get("where") or {}).get("function") not in want["function"]:
        result.bad("%s: in function %s" % (label, (got.get("where") or {}).get("function")))


def line(result, marks, where, label):
    if not marks:
        return "-"
    if not where or not where.get("file"):
        result.bad("%s: no line named, expected %s:%d" % (label, *marks[0]))
        return "no"
    if (os.path.basename(where["file"]), where.get("line")) in marks:
        return "ok"
    result.bad("%s: %s:%s, expected %s" % (label, where["file"], where.get("line"),
                                           " or ".join("%s:%d" % m for m in marks)))
    return "no"


def listed(result, case, verdict, key, wanted, mark):
    listed = verdict.get(key) or []
    for want in wanted:
        match = [item for item in listed if item.get("cause") in want["cause"]]
        if not match:
            result.bad("%s: no %s among %s" % (key, "|".join(want["cause"]),
                                               [i.get("cause") for i in listed]))
            continue
        one(result, mark, want, match[0])
        line(result, case.marks.get(mark), match[0].get("where"), mark)
    # a rank that survives until the launcher ends it is a victim, and whether one does is a matter of timing
    listed = [item for item in listed if case.silent or not (item.get("victim") and item.get("cause") == "none")]
    if not wanted and listed and (case.silent or key == "others"):
        result.bad("%s: not expected: %s" % (key, [i.get("cause") for i in listed]))
