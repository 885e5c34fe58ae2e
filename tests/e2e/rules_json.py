# SPDX-License-Identifier: Apache-2.0
"""What the commands print with --json is what docs/json.md promises. (Verdicts: checks.py compares that of every case.)"""
import glob
import gzip
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "snap"))  # last: its check.py is not the only one
import json_page  # noqa: E402
import make_snapshot  # noqa: E402
from rules_blocks import START, under  # noqa: E402
from rules_pinned import TOO_MUCH  # noqa: E402
from toolbox import same  # noqa: E402

DUMPS = os.path.join(HERE, "..", "dump", "real")
OOM = START + """
torch.reserve(20 << 20, 0)
for step in range(6):
    torch.block_made(segment + (step << 20), 1 << 20, 1, 0)
cudrv.alloc(1 << 40)
"""


def flaws_of(box, section, *argv, **env):
    run = box.plain([box.cuwhy, argv[0], "--json", *argv[1:]], **env)
    same(run.out[:1], "{", "%s printed (%s)" % (" ".join(argv), run.err))
    return ["%s: %s" % (" ".join(argv), flaw) for flaw in json_page.flaws(json.loads(run.out), section)]


def rule__commands_print_the_json_that_is_documented(box):
    found = flaws_of(box, "version", "--version") + flaws_of(box, "causes", "explain", "--list")
    found += flaws_of(box, "cause", "explain", "oom-growth") + flaws_of(box, "failure", "explain", "no-such-cause")
    for code in ("700", "Xid 79", "CUBLAS_STATUS_ALLOC_FAILED", "2"):
        found += flaws_of(box, "code", "explain", code)
    for nvml in ("gpu", "none"):
        machine = {"LD_LIBRARY_PATH": box.sim, "CUWHY_SIM": "h200", "CUWHY_SIM_NVML": nvml}
        found += flaws_of(box, "verdict", "doctor", "--recommend", **machine)
    for words in (("A100",), ("5090", "--driver", "550"), ("5090", "--gpu", "1080", "--os", "windows")):
        found += flaws_of(box, "described", "doctor", "--recommend", "--gpu", *words)
    found += flaws_of(box, "usage", "memory", LD_LIBRARY_PATH=box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML="gpu")
    same(found, [], "flaws")


def what_if_flaws(box):
    run = box.under(box.script(OOM), "--memory-trace", FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    asked = ("memory", "--what-if", "memory=24GiB;memory=4MiB", run.folder)
    return flaws_of(box, "what_if", *asked) + flaws_of(box, "fit", "fit", "--gpu", "rtx3060,a100-40gb", run.folder)


def rule__memory_and_exports_print_the_json_that_is_documented(box):
    found, run = [], under(box, OOM)
    for option in ("--torch-snapshot", "--chrome-trace"):
        found += flaws_of(box, "export", "export", option, "-o", os.path.join(box.scratch, "out" + option), run.folder)
    found += what_if_flaws(box)
    found += flaws_of(box, "report", "report", "--open", "-o", os.path.join(box.scratch, "page.html"), run.folder, BROWSER="true")
    found += flaws_of(box, "report", "report", "--markdown", "-o", os.path.join(box.scratch, "issue.md"), run.folder)
    found += flaws_of(box, "failure", "report", "--markdown", run.folder) + flaws_of(box, "failure", "report", "-o", "-", run.folder)
    for by in ("line", "library"):
        found += flaws_of(box, "compared", "memory", "--at", "0s,oom", "--max-growth", "5%", "--by", by, run.folder)
    for run in (run, box.under(box.script(TOO_MUCH))):
        found += list(json_page.flaws(box.verdict(run), "verdict"))
        found += flaws_of(box, "memory", "memory", run.folder) + flaws_of(box, "memory", "memory", "--at", "0s", run.folder)
    path = os.path.join(box.scratch, "snapshot.pickle")
    for story in ("growth", "fragmentation", "train"):
        make_snapshot.write(path, make_snapshot.make("2.11", story, 900))
        found += flaws_of(box, "verdict", "explain", path)
        for by in ("line", "pool"):
            found += flaws_of(box, "snapshot", "memory", "--by", by, path)
    same(found, [], "flaws")


def rule__documented_keys_exist(box):
    """Each is in quotes in some source: as a key, or at the end of a fact's."""
    text = ""
    for path in glob.glob(os.path.join(HERE, "..", "..", "src", "**", "*.[chd]*"), recursive=True):
        with open(path, encoding="utf-8") as stream:
            text += stream.read()
    known = set(re.findall(r'"(?:[\w.]+\.)?(\w+)"', text)) | set(re.findall(r"DETAIL\((\w+),", text))
    same([key for rows in json_page.SECTIONS.values() for key in rows if key.split(".")[-1] not in known], [], "unknown keys")


def rule__the_keys_of_facts_and_lines_are_documented(box):
    with open(os.path.join(HERE, "..", "..", "src", "case", "case.def"), encoding="utf-8") as stream:
        text = stream.read()
    keys = re.findall(r'^(?:FACT|HEAD)\(\w+, "[\w.]+", \w+, "([\w.]+)"', text, re.M) + re.findall(r'^LINE\(\w+, "([\w.]+)"', text, re.M)
    assert len(keys) > 40, keys
    documented = set(json_page.SECTIONS["verdict"]) | {"fault." + key for key in json_page.SECTIONS["fault"]}
    same([key for key in keys if key not in documented], [], "keys")


def rule__verdicts_on_core_dumps_are_the_json_that_is_documented(box):
    found, path = [], os.path.join(box.scratch, "dump.cudacore")
    for packed in sorted(glob.glob(os.path.join(DUMPS, "*.cudacore.gz"))):
        with gzip.open(packed) as source, open(path, "wb") as out:
            out.write(source.read())
        found += flaws_of(box, "verdict", "explain", path)
    same(found, [], "flaws")
