# SPDX-License-Identifier: Apache-2.0
"""`cuwhy explain DIR` of a job folder whose ranks ended in ways that are easily mistaken: by a shell that reports a signal, from outside, twice under
one number, or with a file that cannot be read."""
import json
import os
import shutil
import subprocess

from toolbox import PATIENCE, same

SECOND = 10 ** 9
START = 1000 * SECOND
REAL = 1794897624 * SECOND


def rank(number, exit=0, at=10, **more):
    """What `cuwhy run --job` writes for a process that ended `at` seconds after its start."""
    end = START + at * SECOND
    told = {"cuwhy_job": 1, "job": "j", "attempt": 0, "rank": number, "world": 4, "node": "n1", "boot": "b1", "command": "python3 train.py",
            "pid": 100 + number, "started_ns": START, "written_ns": end, "real_ns": REAL + at * SECOND, "ended_ns": end, "state": "ended",
            "exit_known": True, "exit": exit}
    told.update(more)
    return told


def explain(box, ranks, damage=None, fresh=False):
    folder = os.path.join(box.scratch, "job")
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    where = os.path.join(folder, "job-j", "attempt-0")
    os.makedirs(where, mode=0o700)
    for r in ranks:
        path = os.path.join(where, "rank-%d.%s.%d.json" % (r["rank"], r["node"], r["pid"]))
        with open(path, "w", encoding="utf-8") as f:
            text = json.dumps(r)
            f.write(text[:len(text) // 2] if r["rank"] == damage else text)
        os.chmod(path, 0o600)
    for path in (folder, os.path.dirname(where), where):
        os.chmod(path, 0o700)
    text = subprocess.run([box.cuwhy, "explain", folder], capture_output=True, text=True, env=box.env(), timeout=PATIENCE)
    told = subprocess.run([box.cuwhy, "explain", "--json", folder], capture_output=True, text=True, env=box.env(), timeout=PATIENCE)
    return text.returncode, json.loads(told.stdout), text.stdout


def rule__a_shell_that_reports_a_signal_is_a_signal(box):
    status, told, _ = explain(box, [rank(0, 143, 8), rank(1, 143, 9), rank(2, 137, 10), rank(3, 143, 11)])
    same((status, told["how"], [r["rank"] for r in told["first"]]), (1, "killed", [2]), "said")


def rule__a_job_that_was_ended_from_outside_is_not_fine(box):
    status, told, text = explain(box, [rank(n, 143, 8 + n) for n in range(4)])
    same((status, told["how"], "nothing failed" in text, "ended from outside" in text), (0, "none", False, True), text)


def rule__what_is_not_known_of_some_ranks_is_said(box):
    _, told, text = explain(box, [rank(0), rank(1)])
    same((told["how"], "nothing failed in the 2 of 4 ranks" in text), ("none", True), text)


def rule__a_file_that_cannot_be_read_is_no_good_end(box):
    status, told, text = explain(box, [rank(n) for n in range(4)], damage=1)
    same((status, told["how"], "nothing failed in the 3 of 4 ranks" in text), (2, "none", True), text)


def rule__of_two_with_one_number_at_one_time_the_failure_counts(box):
    actors = [rank(n, world=2) for n in range(2)]
    learners = [rank(n, 1 if n else 0, world=2, node="n2", boot="b2", pid=200 + n, command="python3 learn.py", real_ns=REAL + 9 * SECOND) for n in range(2)]
    status, told, text = explain(box, actors + learners)
    same((status, told["how"], [(r["rank"], r["node"]) for r in told["first"]]), (1, "failed", [(1, "n2")]), text)
    assert "2 files of ranks that ran twice at the same time" in text and "earlier runs" not in text, text


def rule__a_later_run_under_the_same_id_counts_alone(box):
    first = [rank(n, 1, world=2) for n in range(2)]
    second = [rank(n, 0, world=2, pid=200 + n, started_ns=START + 100 * SECOND, ended_ns=START + 110 * SECOND, written_ns=START + 110 * SECOND,
                   real_ns=REAL + 110 * SECOND) for n in range(2)]
    status, told, text = explain(box, first + second)
    same((status, told["how"], "2 files of earlier runs" in text), (0, "none", True), text)


def killed(number, at, alive=None):
    return rank(number, -1, at, signal=9, **({"alive_ns": START + int(alive * SECOND)} if alive is not None else {}))


def rule__ends_that_two_supervisors_noticed_have_no_order_by_that_alone(box):
    """One `cuwhy run` may notice an end later than another one by chance; files of older releases do not say when a rank was last seen alive."""
    for first, second in ((killed(0, 10, 9.2), killed(1, 11, 9.7)), (killed(0, 10), killed(1, 11)), (killed(0, 10, 9.2), killed(1, 11))):
        status, told, text = explain(box, [first, second], fresh=True)
        same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "killed", False, [0, 1]), text)
        assert "later" not in text and "were killed; which was the first cannot be ordered" in text, text


def rule__what_was_seen_alive_after_another_had_ended_ended_later(box):
    status, told, text = explain(box, [killed(0, 10, 9.2), killed(1, 11, 10.5)])
    same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "killed", True, [0]), text)


def rule__the_page_of_a_job_says_its_verdict_in_json_too(box):
    oom = {"cause": "oom-capacity", "sure": "certain", "title": "out of memory", "own": True, "failed_ns": START + 9 * SECOND}
    fault = {"cause": "illegal-access-out-of-bounds", "sure": "likely", "title": "a fault", "own": True, "failed_ns": START + 9 * SECOND}
    for ranks, cause, how in (([rank(n) for n in range(4)], "none", "none"),
                              ([rank(0, 1, **oom), rank(1, 143)], "oom-capacity", "failed"),
                              ([rank(0, 1, **oom), rank(1, 1, **dict(oom, failed_ns=START + 10 * SECOND))], "oom-capacity", "failed"),
                              ([rank(0, 1, **oom), rank(1, 1, boot="b2", node="n2", **fault)], None, "failed"),     # which was first is open
                              ([killed(0, 10, 9), rank(1, 143, 12)], "unknown", "killed")):
        status, told, text = explain(box, ranks, fresh=True)
        same((told["cause"], told["how"]), (cause, how), "explain " + text)
        page = subprocess.run([box.cuwhy, "report", "--json", "-o", os.path.join(box.scratch, "page.html"), os.path.join(box.scratch, "job")],
                              capture_output=True, text=True, env=box.env(), timeout=PATIENCE)
        page = json.loads(page.stdout)
        same((page["cause"], page["how"], page["title"]), (cause, how, told["title"]), "report")
