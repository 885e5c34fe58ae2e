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
        assert "later" not in text and "were killed; which was killed first is not known" in text, text


def rule__what_was_seen_alive_after_another_had_ended_ended_later(box):
    status, told, text = explain(box, [killed(0, 10, 9.2), killed(1, 11, 10.5)])
    same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "killed", True, [0]), text)


FAULT = {"cause": "illegal-access-out-of-bounds", "sure": "certain", "title": "a kernel read past the end", "own": True}


def rule__one_killed_before_another_failed_is_no_victim(box):
    """The one that failed died too fast for its recorder to note the end: it was seen alive only before, but it noted its failure."""
    status, told, text = explain(box, [killed(0, 10, 9.2), rank(1, -1, 11, signal=6, alive_ns=START + 9 * SECOND, failed_ns=START + 102 * SECOND // 10, **FAULT)])
    same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "killed", True, [0]), text)
    assert "1 rank" not in text and "rank 0 on n1 was killed first, by signal 9" in text, text


def rule__one_that_may_have_been_killed_before_another_failed_is_not_called_its_victim(box):
    for clock in ({}, {"node": "n2", "boot": "b1"}):
        status, told, text = explain(box, [killed(0, 11, 9.2), rank(1, 1, 11, alive_ns=START + 11 * SECOND, failed_ns=START + 10 * SECOND, **FAULT, **clock)], fresh=True)
        same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "failed", False, [0, 1]), text)
        assert "ranks 0, 1 failed or were killed; which was first is not known" in text, text


def rule__one_that_a_launcher_killed_after_a_failure_is_its_victim(box):
    status, told, text = explain(box, [killed(0, 12, 11.5), rank(1, 1, 11, alive_ns=START + 11 * SECOND, failed_ns=START + 10 * SECOND, **FAULT)])
    same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "failed", True, [1]), text)
    assert "rank 0 was killed by signal 9" in text, text


def rule__what_a_killed_rank_survived_before_is_not_why_it_ended(box):
    survived = {"cause": "oom-capacity", "sure": "likely", "title": "out of memory", "failed_ns": START + SECOND}
    status, told, text = explain(box, [dict(killed(0, 12, 11.5), **survived), rank(1, 1, 11, alive_ns=START + 11 * SECOND, failed_ns=START + 10 * SECOND, **FAULT)])
    same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "failed", True, [1]), text)


def rule__a_rank_whose_file_cannot_be_read_may_have_been_the_first(box):
    ranks = [rank(0, 1, failed_ns=START + 9 * SECOND, **FAULT)] + [rank(n, 143, 12) for n in (1, 2, 3)]
    status, told, text = explain(box, ranks, damage=2)
    same((status, told["how"], told["ordered"], [r["rank"] for r in told["first"]]), (1, "failed", False, [0]), text)
    assert "failed first" not in text and "failed, but may not have been the first" in text and \
           "the file of rank 2 cannot be read: it may have failed before" in text, text


def rule__a_damaged_file_of_a_rank_that_has_another_one_raises_no_doubt(box):
    again = dict(rank(0, 0), pid=900)
    status, told, text = explain(box, [rank(0, 1, failed_ns=START + 9 * SECOND, **FAULT)] + [rank(n, 143, 12) for n in (1, 2, 3)])
    where = os.path.join(box.scratch, "job", "job-j", "attempt-0")
    with open(os.path.join(where, "rank-0.n1.900.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(again)[:40])
    told = json.loads(subprocess.run([box.cuwhy, "explain", "--json", os.path.join(box.scratch, "job")], capture_output=True, text=True, env=box.env(),
                                     timeout=PATIENCE).stdout)
    same((status, told["ordered"], told["files_damaged"], [r["rank"] for r in told["first"]]), (1, True, 1, [0]), text)


def rule__a_job_without_a_file_that_can_be_read_does_not_hide_an_older_one(box):
    explain(box, [rank(0, 1, failed_ns=START + 9 * SECOND, **FAULT)] + [rank(n, 143, 12) for n in (1, 2, 3)])
    folder = os.path.join(box.scratch, "job")
    other = os.path.join(folder, "job-other", "attempt-0")
    os.makedirs(other, mode=0o700)
    os.symlink("/etc/passwd", os.path.join(other, "rank-0.n1.1.json"))
    with open(os.path.join(other, "rank-1.n1.2.json"), "w", encoding="utf-8") as f:
        f.write("{")
    later = os.stat(os.path.join(folder, "job-j", "attempt-0")).st_mtime + 100
    for path in (other, os.path.dirname(other)):
        os.utime(path, (later, later))
    told = json.loads(subprocess.run([box.cuwhy, "explain", "--json", folder], capture_output=True, text=True, env=box.env(), timeout=PATIENCE).stdout)
    same((told["job"], [r["rank"] for r in told["first"]], told["other_jobs"]), ("j", [0], ["other"]), "said")


def rule__a_job_is_told_in_english(box):
    hurt = {"exception": "DistNetworkError", "of_peers": "it lost the connection to its peers", "failed_ns": START + 11 * SECOND}
    failed = rank(0, 1, failed_ns=START + 9 * SECOND, world=12, **FAULT)
    _, told, text = explain(box, [failed] + [rank(n, 1, 12, world=12, **hurt) for n in range(1, 12)])
    assert "11 ranks (1-11): each lost the connection to its peers" in text, text
    same([g["did"] for g in told["groups"] if g["role"] == "victim"], ["each lost the connection to its peers"], "groups")
    _, told, text = explain(box, [failed, rank(1, 1, 12, world=2, **hurt)], fresh=True)
    assert "rank 1 lost the connection to its peers" in text, text


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
