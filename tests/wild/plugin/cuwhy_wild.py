# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: which tests there are, which of them to run, and what came of each.

Every report is a line of its own, written at once, so that a test that ends the process takes no other result with it.
WILD_LIST: only write the tests' ids into this file. WILD_CHOSEN: run the tests of this file. WILD_REPORTS: write there.
"""
import json
import os

import pytest

OWNER = os.getpid()     # tests fork


def write(**line):
    path = os.environ.get("WILD_REPORTS")
    if path and os.getpid() == OWNER:
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")


def message_of(report):
    """The first line of the error, or the reason of a skip."""
    text = report.longrepr
    if isinstance(text, tuple):
        return str(text[2])
    crash = getattr(text, "reprcrash", None)
    lines = (crash.message if crash else str(text or "")).strip().splitlines()
    return lines[0 if crash else -1] if lines else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    if "WILD_LIST" in os.environ:
        with open(os.environ["WILD_LIST"], "w", encoding="utf-8") as stream:
            json.dump([item.nodeid for item in items], stream)
        items[:] = []
    elif "WILD_CHOSEN" in os.environ:
        with open(os.environ["WILD_CHOSEN"], encoding="utf-8") as stream:
            chosen = set(json.load(stream))
        items[:] = [item for item in items if item.nodeid in chosen]


def pytest_collectreport(report):
    if report.failed:
        write(id=report.nodeid + " (collection)", when="call", outcome="error", message=message_of(report), seconds=0)
        write(id=report.nodeid + " (collection)", when="finish")


def pytest_runtest_logstart(nodeid):
    write(id=nodeid, when="start")


def pytest_runtest_logreport(report):
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = {"skipped": "xfailed", "passed": "xpassed"}.get(outcome, outcome)
    elif outcome == "failed" and report.when != "call":
        outcome = "error"
    write(id=report.nodeid, when=report.when, outcome=outcome, message=message_of(report), seconds=report.duration)


def pytest_runtest_logfinish(nodeid):
    write(id=nodeid, when="finish")
