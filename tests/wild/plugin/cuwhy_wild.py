# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: which tests there are, which of them to run, and what came of each.

Every report is a line of its own, written at once, so that a test that ends the process takes no other result with it.
WILD_LIST: only write the tests' ids into this file. WILD_CHOSEN: run the tests of this file. WILD_REPORTS: write there.
"""
import json
import os
import tempfile

import pytest
from _pytest.runner import runtestprotocol

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


def reports_of_child(item, nextitem):
    """Runs a test in a forked process. Returns its reports, or how the process ended without any."""
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        pid = os.fork()
        if pid == 0:
            ended = 1
            try:
                reports = runtestprotocol(item, log=False, nextitem=nextitem)
                json.dump([item.config.hook.pytest_report_to_serializable(config=item.config, report=r) for r in reports], file, default=str)
                file.flush()
                ended = 0
            finally:
                os._exit(ended)
        status = os.waitpid(pid, 0)[1]
        file.seek(0)        # both processes share the place in the file
        text = file.read()
    return (json.loads(text) if text else []), os.waitstatus_to_exitcode(status)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Tests that are marked so need a process of their own: an assertion on the GPU leaves nothing usable behind."""
    if not item.get_closest_marker("forked"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports, status = reports_of_child(item, nextitem)
    for data in reports:
        item.ihook.pytest_runtest_logreport(report=item.config.hook.pytest_report_from_serializable(config=item.config, data=data))
    if not reports:
        write(id=item.nodeid, when="call", outcome="crashed", message="status %d" % status, seconds=0)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
