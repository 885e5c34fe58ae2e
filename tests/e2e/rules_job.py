# SPDX-License-Identifier: Apache-2.0
"""`cuwhy run --job DIR`: what several runs of one job leave in a shared folder, and what `cuwhy explain DIR` makes of it."""
import json
import os
import signal
import stat
import subprocess
import tempfile
import sys
import time

from toolbox import PATIENCE, same

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import json_page  # noqa: E402

FAULT = os.path.join(HERE, "cases", "fault_oob.py")
WAITS = """
import os, socket, sys, time
class DistNetworkError(RuntimeError): pass
import cudrv
cudrv.init()
cudrv.synchronize()
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
raise DistNetworkError("Connection closed by peer")
"""


def run_rank(box, folder, rank, program, world=2, options=(), **env):
    where = box.env(PYTHONPATH=os.path.join(HERE, "site-packages"), RANK=str(rank), WORLD_SIZE=str(world), CUWHY_JOB_ID="j1",
                    CUWHY_NODE="node%d" % rank, **env)
    return subprocess.Popen([box.cuwhy, "run", "--gpu", "sim:h200", "--job", folder, *options, "--", box.python, *program],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where)


def explain(box, folder):
    done = subprocess.run([box.cuwhy, "explain", folder, "--json"], capture_output=True, text=True, timeout=PATIENCE, env=box.env())
    got = json.loads(done.stdout)
    same(list(json_page.flaws(got, "job")), [], "flaws of the JSON")
    return got, done.returncode


def files_of(folder):
    """Without those that are still written, beside the ones that they will be."""
    return sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names if not name.startswith("."))


def wait_for(what):
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def fault_and_victim(box, folder):
    """Rank 1 faults, then rank 0 loses it. What rank 0's node printed."""
    mark = os.path.join(folder, "mark")
    victim = run_rank(box, folder, 0, ["-c", WAITS, mark])
    wait_for(lambda: any("rank-0." in name for name in files_of(folder)))
    run_rank(box, folder, 1, [FAULT]).communicate(timeout=PATIENCE)
    with open(mark, "w", encoding="utf-8"):
        pass
    return victim.communicate(timeout=PATIENCE)[1]


def rule__the_rank_that_failed_first_is_named_with_its_cause_and_the_other_is_its_victim(box):
    with tempfile.TemporaryDirectory() as folder:
        printed = fault_and_victim(box, folder)
        got, status = explain(box, folder)
    same(status, 1, "status")
    same([(x["rank"], x["node"], x["cause"]) for x in got["first"]], [(1, "node1", "illegal-access-out-of-bounds")], "first (%s)" % got)
    same([(x["rank"], x["role"]) for x in got["ranks"]], [(0, "victim"), (1, "first")], "roles")
    same(got["missing"], [], "missing")
    assert "job j1, attempt 0: rank 1 on node1 failed first" in printed, printed


def rule__files_of_a_job_are_its_users_alone_and_small(box):
    with tempfile.TemporaryDirectory() as folder:
        run_rank(box, folder, 0, ["-c", "pass"], world=1).communicate(timeout=PATIENCE)
        names = files_of(folder)
        same(len(names), 1, "files (%s)" % names)
        same(stat.S_IMODE(os.stat(names[0]).st_mode), 0o600, "mode")
        for level in (names[0], os.path.dirname(names[0])):
            same(stat.S_IMODE(os.stat(os.path.dirname(level)).st_mode), 0o700, "mode of a folder")
        assert os.path.getsize(names[0]) < 4096
        got, status = explain(box, folder)
    same((status, got["how"], got["ranks"][0]["role"]), (0, "none", "fine"), "answer")


def rule__a_rank_killed_by_signal_9_is_named(box):
    with tempfile.TemporaryDirectory() as folder:
        run_rank(box, folder, 0, ["-c", "import os; os.kill(os.getpid(), 9)"], world=1).communicate(timeout=PATIENCE)
        got, _ = explain(box, folder)
    same((got["how"], got["first"][0]["rank"]), ("killed", 0), "answer")


def rule__an_end_lies_between_the_last_look_and_the_one_that_noticed_it(box):
    for program in ("import cudrv; cudrv.init()\n", ""):        # recorded, and not
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "mark")
            run = run_rank(box, folder, 0, ["-c", program + "import time; open(%r, 'w').close(); time.sleep(600)" % mark], world=1)
            wait_for(lambda: os.path.exists(mark) and any("rank-0." in name for name in files_of(folder)))
            name = [n for n in files_of(folder) if "rank-0." in n][0]
            with open(name, encoding="utf-8") as f:
                pid = json.load(f)["pid"]
            before = time.monotonic_ns()
            os.kill(pid, signal.SIGKILL)
            run.communicate(timeout=PATIENCE)
            with open(name, encoding="utf-8") as f:
                told = json.load(f)
        assert 0 < told["alive_ns"] < told["ended_ns"], told
        # it was killed after `before`; the last look may have been before it said that it had started
        assert told["ended_ns"] > before, (before, told)


def rule__a_run_that_is_killed_leaves_what_it_had(box):
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        run = run_rank(box, folder, 3, ["-c", WAITS, mark], world=4)
        wait_for(lambda: any("rank-3." in name for name in files_of(folder)))
        run.send_signal(signal.SIGKILL)
        run.wait(timeout=PATIENCE)
        got, _ = explain(box, folder)
        with open(mark, "w", encoding="utf-8"):     # the program goes on without it
            pass
        run.communicate(timeout=PATIENCE)
    same([(x["rank"], x["role"]) for x in got["ranks"]], [(3, "open")], "ranks")
    same(got["missing"], [0, 1, 2], "missing")


def rule__attempts_of_a_job_are_told_apart(box):
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(2):
            run_rank(box, folder, 0, [FAULT] if attempt == 0 else ["-c", "pass"], world=1,
                     TORCHELASTIC_RESTART_COUNT=str(attempt)).communicate(timeout=PATIENCE)
        got, status = explain(box, folder)
    same((got["attempt"], got["how"], status), (1, "none", 0), "the last attempt")
    same([(x["attempt"], x["how"]) for x in got["earlier"]], [(0, "failed")], "the one before")


def rule__a_job_folder_that_cannot_be_written_changes_nothing(box):
    with tempfile.NamedTemporaryFile() as blocked:
        run = run_rank(box, blocked.name, 0, ["-c", "print(1); raise SystemExit(7)"], world=1)
        out, err = run.communicate(timeout=PATIENCE)
    same((run.returncode, out), (7, "1\n"), "the program")
    assert "job folder" in err, err


def rule__nothing_is_written_through_links_in_a_job_folder(box):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        os.symlink(elsewhere, os.path.join(folder, "job-j1"))
        run = run_rank(box, folder, 0, ["-c", "pass"], world=1)
        _, err = run.communicate(timeout=PATIENCE)
        same((run.returncode, os.listdir(elsewhere)), (0, []), "written elsewhere")
    assert "another user" in err, err


def rule__a_launcher_and_its_rank_are_told_apart(box):
    """Under srun, torchrun has a SLURM_PROCID, and its worker has a RANK of its own."""
    launcher = "import os, subprocess, sys; sys.exit(subprocess.call([sys.executable, %r], env=dict(os.environ, RANK='1')))" % FAULT
    with tempfile.TemporaryDirectory() as folder:
        where = box.env(PYTHONPATH=os.path.join(HERE, "site-packages"), SLURM_PROCID="0", SLURM_NTASKS="2", SLURM_JOB_ID="77",
                        SLURMD_NODENAME="n1")
        subprocess.run([box.cuwhy, "run", "--gpu", "sim:h200", "--job", folder, "--", box.python, "-c", launcher],
                       capture_output=True, timeout=PATIENCE, env=where, check=False)
        got, _ = explain(box, folder)
    same((got["job"], [x["rank"] for x in got["first"]], [(x["rank"], x["role"]) for x in got["ranks"]]),
         ("77", [1], [(1, "first"), (None, "victim")]), "answer (%s)" % got)


def ranks(box, mode, folder):
    """Two ranks that call NCCL (its stand-in)."""
    sim = os.path.join(box.build, "sim")
    program = box.program("ranks", os.path.join(sim, "libnccl.so.2"), os.path.join(sim, "libcuda.so.1"), "-Wl,-rpath," + sim)
    subprocess.run([box.cuwhy, "run", "--gpu", "sim:h200,devices=2", "--job", folder, "--", program, mode], capture_output=True,
                   timeout=PATIENCE, env=box.env(CUWHY_JOB_ID="n"), check=False)
    return explain(box, folder)[0]


def rule__of_two_ranks_the_one_that_never_called_a_collective_and_the_one_that_did_are_named(box):
    with tempfile.TemporaryDirectory() as folder:
        got = ranks(box, "absent", folder)
    # it may be late, or the other one may have called one too many
    same((got["how"], got["ordered"], [x["rank"] for x in got["first"]]), ("absent", False, [0, 1]), "answer (%s)" % got)
    assert "rank 1" in got["because"][0] and "never came to call number 3" in got["because"][0], got["because"]


def rule__ranks_that_call_different_collectives_are_told_with_both_calls(box):
    with tempfile.TemporaryDirectory() as folder:
        got = ranks(box, "diverge", folder)
    same((got["how"], got["ordered"]), ("diverged", False), "answer (%s)" % got)    # of two, nobody is the odd one
    assert "all_gather of 64 bfloat16" in got["because"][0] and "all_reduce of 64 float32" in got["because"][0], got["because"]


def rule__a_call_that_the_other_rank_never_makes_is_told_when_that_has_ended(box):
    with tempfile.TemporaryDirectory() as folder:
        got = ranks(box, "more", folder)
    same((got["how"], got["ordered"], [x["rank"] for x in got["first"]]), ("diverged", False, [0, 1]), "answer (%s)" % got)
    same([(x["rank"], x["cause"], x["certainty"]) for x in got["first"] if x["cause"]], [(1, "nccl-rank-divergence", "likely")], "causes (%s)" % got)


def rule__communicators_have_one_id_on_all_ranks_also_when_split(box):
    with tempfile.TemporaryDirectory() as folder:
        got = ranks(box, "fine", folder)
        comms = []
        for name in files_of(folder):
            if "rank-" in name:
                with open(name, encoding="utf-8") as f:
                    comms.append(json.load(f)["comms"])
    same(got["how"], "none", "answer (%s)" % got)
    same(len(comms), 2, "ranks")
    same([c["id"] for c in comms[0]], [c["id"] for c in comms[1]], "ids")
    same([(c["called"], "parent" in c) for c in comms[0]], [(3, False), (1, True)], "calls")
    same(comms[0][1]["parent"], comms[0][0]["id"], "the parent of the split")


def rule__a_job_that_hangs_tells_who_is_late_while_it_runs_and_after_its_node_died(box):
    sim = os.path.join(box.build, "sim")
    program = box.program("ranks", os.path.join(sim, "libnccl.so.2"), os.path.join(sim, "libcuda.so.1"), "-Wl,-rpath," + sim)
    with tempfile.TemporaryDirectory() as folder:
        told = lambda: [name for name in files_of(folder) if os.path.basename(name).startswith(("rank-", "process-"))]  # noqa: E731
        run = subprocess.Popen([box.cuwhy, "run", "--gpu", "sim:h200,devices=2", "--job", folder, "--", program, "stuck"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=box.env(CUWHY_JOB_ID="n"))
        try:
            wait_for(lambda: told() and explain(box, folder)[0]["because"])
            got, status = explain(box, folder)
            run.send_signal(signal.SIGKILL)     # what is left is what a dead node leaves
            run.wait(timeout=PATIENCE)
            later, _ = explain(box, folder)
        finally:
            for name in told():
                with open(name, encoding="utf-8") as f:
                    os.kill(json.load(f)["pid"], signal.SIGKILL)
    same((got["how"], status), ("none", 0), "answer (%s)" % got)
    assert "others wait for rank 1" in got["title"] and "had not come to call number 3" in got["because"][0] and "all_reduce of 64" in got["because"][0], got
    same(later["because"], got["because"], "after the node died")


def rule__a_rank_killed_by_signal_9_leaves_its_collectives(box):
    sim = os.path.join(box.build, "sim")
    program = box.program("ranks", os.path.join(sim, "libnccl.so.2"), os.path.join(sim, "libcuda.so.1"), "-Wl,-rpath," + sim)

    def ranks_in(folder):
        found = {}
        for name in files_of(folder):
            if os.path.basename(name).startswith("rank-"):
                with open(name, encoding="utf-8") as f:
                    rank = json.load(f)
                found[rank["rank"]] = rank
        return found

    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen([box.cuwhy, "run", "--gpu", "sim:h200,devices=2", "--job", folder, "--", program, "stuck"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=box.env(CUWHY_JOB_ID="n"))
        wait_for(lambda: len([r for r in ranks_in(folder).values() if r.get("comms")]) == 2)
        pids = {n: rank["pid"] for n, rank in ranks_in(folder).items()}
        for n in (1, 0):    # after rank 0, the program ends rank 1 by signal 15
            os.kill(pids[n], signal.SIGKILL)
        run.wait(timeout=PATIENCE)
        left = ranks_in(folder)
    same([(left[n]["signal"], left[n]["comms"][0]["called"]) for n in (0, 1)], [(9, 3), (9, 2)], "signal and calls")


CAUGHT = """
import ctypes, os, sys, time
import cudrv
cudrv.init()
data = cudrv.alloc(4096)
cudrv.launch(cudrv.kernel("oob_store"), (2,), (64,), cudrv.u64(data), ctypes.c_int64(1 << 40))
try:
    cudrv.synchronize()
except Exception:
    pass
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
"""


def rule__a_lost_context_is_told_while_the_process_still_runs(box):
    """As in Ray, which catches what a task raises, and ends the worker and its cuwhy by signal 9."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        run = run_rank(box, folder, 0, ["-c", CAUGHT, mark], world=1)
        wait_for(lambda: any(name.endswith(".verdict.json") for name in files_of(folder)))
        wait_for(lambda: explain(box, folder)[0]["how"] == "failed")
        run.send_signal(signal.SIGKILL)
        run.wait(timeout=PATIENCE)
        got, _ = explain(box, folder)
        with open(mark, "w", encoding="utf-8"):
            pass
        run.communicate(timeout=PATIENCE)
    same(got["first"][0]["cause"], "illegal-access-out-of-bounds", "cause (%s)" % got)
