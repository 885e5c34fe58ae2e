# SPDX-License-Identifier: Apache-2.0
"""The labelled reports (tests/text/reports/*.jsonl): one JSON object per line.

  id       never changes: its hash decides the half
  source   the public report that it was rebuilt from: owner/repo#number
  label    the cause; `none`: no failure of CUDA
  also     other causes that are right, too
  text     what the reporter showed; env: what was said about the machine, "" if nothing
  told_by  who could tell the cause: `text` (anyone who reads it), `expert` (who knows the field), `thread` (only the discussion
           that followed)
  package  whose message it is
  why      one sentence: what the label rests on
  read     only where true: it was read while rules were changed, so it is tuned whatever its hash says

Half of them are kept: nobody reads them or changes a rule because of them, so that their figures tell how the rules do on reports
that nobody has seen."""
import glob
import hashlib
import json
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reports")
FIELDS = {"id": str, "source": str, "label": str, "also": list, "text": str, "env": str, "told_by": str, "package": str, "why": str}
TELLERS = ("text", "expert", "thread")
HALVES = ("tuned", "kept")


def half(report):
    if report.get("read"):
        return "tuned"
    return HALVES[int(hashlib.sha256(report["id"].encode()).hexdigest(), 16) & 1]


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def files():
    return sorted(glob.glob(os.path.join(FOLDER, "*.jsonl")))


def read_all():
    return [report for path in files() for report in read(path)]


def accepted(report):
    return [report["label"]] + report["also"]


def parts(report):
    """Its files, as `cuwhy explain` gets them: (name, text)."""
    return [("log.txt", report["text"] + "\n")] + ([("env.txt", report["env"] + "\n")] if report["env"] else [])
