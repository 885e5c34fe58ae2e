# SPDX-License-Identifier: Apache-2.0
"""`cuwhy run --hang-after`: kernels that never end, and programs that only seem to be waiting for one."""
import json
import os
import re
import subprocess

from toolbox import PATIENCE, same

HANG = """
import cudrv, ctypes, os, sys, threading, time
context = cudrv.init()
data = cudrv.alloc(4096)
nop, hang = cudrv.kernel("nop"), cudrv.kernel("hang")
def step():
    cudrv.launch(nop, (1,), (1,))
    cudrv.launch(hang, (2,), (64,), ctypes.c_uint64(0))
step()
"""
LINE = 8        # of the launch
WAIT = 10       # of what follows it
SYNC = HANG + "cudrv.synchronize()\n"


def answer(box, text, *options, **more):
    run = box.under(box.script(text), *options, **more)
    return run, box.verdict(run)


def dumps(run):
    return [name for name in os.listdir(run.folder) if name.endswith(".cudacore")]


def rule__a_hang_is_dumped_named_and_ended(box):
    run, verdict = answer(box, SYNC, "--hang-after", "1s")
    same(run.status, 143, "status")
    same((verdict["cause"], verdict["certainty"]), ("kernel-hang", "certain"), "cause")
    same((verdict["kernel"]["name"], verdict["kernel"]["grid"], verdict["kernel"]["block"]),
         ("hang(int*)", [2, 1, 1], [64, 1, 1]), "kernel")
    same((verdict["where"]["line"], verdict["where"]["function"]), (LINE, "step"), "launch")
    same(verdict["noticed"]["line"], WAIT, "wait")
    waiting = verdict["waiting"]
    same([(w["api"], w["line"], w["polls"]) for w in waiting], [("cuCtxSynchronize", WAIT, False)], "waiting")
    assert 1 <= waiting[0]["seconds"] <= PATIENCE and waiting[0]["tid"] == verdict["process"]["pid"], waiting
    same(waiting[0]["stack"][-1]["line"], WAIT, "stack of the waiting thread")
    standing = verdict["fault"]["running"]
    same(sum(p["threads"] for p in standing["places"]), standing["threads"], "threads by place")
    assert all(p["pc"].startswith("hang+0x") for p in standing["places"]), standing
    same(len(dumps(run)), 1, "dumps kept")


def rule__the_recording_of_a_hang_tells_the_same_again(box):
    run, verdict = answer(box, SYNC, "--hang-after", "1s")
    again = subprocess.run([box.cuwhy, "explain", "--json", run.folder], capture_output=True, text=True, env=box.env())
    told = json.loads(again.stdout)
    for key in ("cause", "certainty", "where", "waiting", "kernel", "fault"):
        same(told[key], verdict[key], key)


def rule__a_program_that_goes_on_sees_719_and_it_is_no_trap(box):
    text = HANG + """
try:
    cudrv.synchronize()
except cudrv.CudaError as error:
    print(error.code)
    sys.exit(10)
"""
    run, verdict = answer(box, text, "--hang-after", "1s", "--hang-go-on")
    same((run.status, run.out), (10, "719\n"), "status and output")
    same((verdict["cause"], verdict["certainty"], verdict["error"]["code"]), ("kernel-hang", "certain", 719), "cause")
    same(verdict["where"]["line"], LINE, "line")
    same([c["cause"] for c in verdict["candidates"]], ["kernel-hang"], "candidates")
    assert '"code":710' not in run.err and "710" not in run.out, run.err
    run, verdict = answer(box, text.replace("sys.exit(10)", "sys.exit(0)"), "--hang-after", "1s", "--hang-go-on")
    same((run.status, verdict["cause"]), (0, "none"), "a program that handled it")
    same([n["cause"] for n in verdict["notes"]], ["kernel-hang"], "notes")


def rule__what_is_said_on_stderr_comes_before_the_dump(box):
    run = subprocess.run([box.cuwhy, "run", "--gpu", "sim:tiny", "--hang-after", "1s"] + box.script(SYNC),
                         capture_output=True, text=True, env=box.env(), timeout=PATIENCE)
    first = run.stderr.splitlines()[0]
    assert re.search(r"has waited \d+ s for the GPU in cuCtxSynchronize \(.*program.py:%d\)" % WAIT, first), first
    assert first.endswith("taking a core dump, which ends the kernel"), first
    assert "Traceback" not in run.stderr, run.stderr


def rule__a_slow_kernel_below_the_limit_is_left_alone(box):
    text = HANG.replace('"hang"', '"spin"').replace("c_uint64(0)", "c_int(1500)") + "cudrv.synchronize()\n"
    run, verdict = answer(box, text, "--hang-after", "30s")
    same((run.status, run.out, verdict["cause"], dumps(run)), (0, "", "none", []), "a slow kernel")


def rule__a_program_that_was_stopped_has_not_waited(box):
    text = """
import cudrv, ctypes, os, subprocess
cudrv.init()
spin = cudrv.kernel("spin")
subprocess.Popen(["sh", "-c", "sleep 0.3; kill -STOP %d; sleep 7; kill -CONT %d" % (os.getpid(), os.getpid())])
cudrv.launch(spin, (1,), (1,), ctypes.c_int(800))
cudrv.synchronize()
"""
    run, verdict = answer(box, text, "--hang-after", "5s")
    same((run.status, verdict["cause"]), (0, "none"), "a program that was stopped")


PIPES = """
import cudrv, os
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (1,))
cudrv.synchronize()
folder = os.path.dirname(os.environ["CUWHY_SOCK"])
print(sum(name.startswith("pipe-") for name in os.listdir(folder)), "CUDA_COREDUMP_PIPE" in os.environ)
"""


def rule__the_pipe_is_there_only_when_asked_for(box):
    same(box.under(box.script(PIPES)).out, "0 False\n", "without --hang-after")
    same(box.under(box.script(PIPES), CUWHY_HANG="/nowhere").out, "0 False\n", "with a stray variable")
    same(box.under(box.script(PIPES), "--hang-after", "5m").out, "1 False\n", "with --hang-after")
    same(box.under(box.script(PIPES), "--hang-after", "5m", "--no-core-dump").out, "1 False\n", "without other dumps")


def rule__asking_again_and_again_is_waiting(box):
    text = HANG + """
query = ctypes.CDLL("libcuda.so.1").cuStreamQuery
while query(None) == 600:
    time.sleep(0.01)
"""
    run, verdict = answer(box, text, "--hang-after", "1s")
    same((run.status, verdict["cause"], verdict["where"]["line"]), (143, "kernel-hang", LINE), "a program that polls")
    same([(w["api"], w["polls"]) for w in verdict["waiting"]], [("cuStreamQuery", True)], "waiting")


def rule__who_asked_once_and_does_other_things_does_not_wait(box):
    text = HANG + """
query = ctypes.CDLL("libcuda.so.1").cuStreamQuery
assert query(None) == 600
time.sleep(3)
os._exit(3)
"""
    run, verdict = answer(box, text, "--hang-after", "1s")
    same((run.status, verdict["cause"], dumps(run)), (3, "none", []), "a program that does not wait")


def rule__a_copy_and_every_thread_that_waits_are_told(box):
    text = HANG + """
def wait():
    cudrv.call("cuCtxSetCurrent", context)
    cudrv.synchronize()
threading.Thread(target=wait).start()
cudrv.read_floats(data, 1)
"""
    run, verdict = answer(box, text, "--hang-after", "4s")     # those that have waited half of it count, too
    same((run.status, verdict["cause"], verdict["where"]["line"]), (143, "kernel-hang", LINE), "cause")
    same(sorted(w["api"] for w in verdict["waiting"]), ["cuCtxSynchronize", "cuMemcpyDtoH_v2"], "waiting")


LOAD = HANG + 'cudrv.module(cudrv.image("nop"))\n'


def rule__loading_code_behind_a_hang_is_waiting(box):
    run, verdict = answer(box, LOAD, "--hang-after", "1s", "--hang-load", "1s", gpu="sim:tiny,load_waits")
    same((run.status, verdict["cause"], verdict["certainty"], verdict["where"]["line"]),
         (143, "kernel-hang", "certain", LINE), "cause")
    same([(w["api"], w["line"]) for w in verdict["waiting"]], [("cuModuleLoadData", WAIT)], "waiting")
    assert verdict["waiting"][0]["seconds"] >= 2, verdict["waiting"]


def rule__loading_code_has_a_minute_more(box):
    ends = LOAD.replace("step()\ncudrv", "threading.Timer(4, os._exit, (3,)).start()\nstep()\ncudrv")
    run, verdict = answer(box, ends, "--hang-after", "1s", gpu="sim:tiny,load_waits")
    same((run.status, dumps(run)), (3, []), "status and dumps")


def rule__a_compiler_that_takes_long_is_no_hang(box):
    """Without work on the GPU, whatever the time; the work before it has been waited for."""
    text = HANG.replace('"hang"', '"spin"').replace("c_uint64(0)", "c_int(10)") + "cudrv.synchronize()\n" + \
        'cudrv.module(cudrv.image("nop"))\n'
    run, verdict = answer(box, text, "--hang-after", "2s", "--hang-load", "1s", gpu="sim:tiny,load_waits,load_takes=5000")
    same((run.status, verdict["cause"], dumps(run)), (0, "none", []), "a slow compiler")


def rule__another_thread_that_waits_is_not_hidden_by_one_that_loads(box):
    text = HANG + """
def load():
    cudrv.call("cuCtxSetCurrent", context)
    cudrv.module(cudrv.image("nop"))
threading.Thread(target=load).start()
time.sleep(0.3)
cudrv.synchronize()
"""
    run, verdict = answer(box, text, "--hang-after", "4s", gpu="sim:tiny,load_waits")
    same((run.status, verdict["cause"], verdict["where"]["line"]), (143, "kernel-hang", LINE), "cause")
    same(sorted(w["api"] for w in verdict["waiting"]), ["cuCtxSynchronize", "cuModuleLoadData"], "waiting")


def rule__without_a_pipe_the_waiting_line_and_the_suspects_are_told(box):
    mine = os.path.join(box.scratch, "mine")
    run, verdict = answer(box, SYNC, "--hang-after", "1s", CUDA_COREDUMP_FILE=mine)
    same((run.status, verdict["cause"], verdict["certainty"]), (143, "kernel-hang", "likely"), "cause")
    same([s["line"] for s in verdict["suspects"]], [LINE, LINE - 1], "suspects")
    same([w["line"] for w in verdict["waiting"]], [WAIT], "waiting")
    assert any("settings" in why for why in verdict["why"]), verdict["why"]
    assert not os.path.exists(mine)


def rule__every_process_that_hangs_is_handled(box):
    together = """
open("%s.%%d" %% os.getpid(), "w").close()
while len(glob.glob("%s.*")) < 2:
    time.sleep(0.01)
step()
""" % ((os.path.join(box.scratch, "here"),) * 2)
    worker = box.script("import glob\n" + SYNC.replace("\nstep()\n", together))
    parent = os.path.join(box.scratch, "parent.sh")
    with open(parent, "w", encoding="utf-8") as stream:
        stream.write("'%s' '%s' & '%s' '%s' & wait; sleep 60\n" % (tuple(worker) * 2))  # so that there is an sh to terminate
    run = box.under(["sh", parent], "--hang-after", "4s")     # those that have waited half of it count, too
    verdict = box.verdict(run)
    same(run.status, 143, "status")
    same([v["cause"] for v in [verdict] + verdict["others"]], ["kernel-hang"] * 2, "causes")
    same(len(dumps(run)), 2, "dumps")


def rule__a_program_that_ignores_the_request_to_end_is_killed(box):
    run, verdict = answer(box, "import signal\n" + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SYNC,
                          "--hang-after", "1s")
    same((run.status, verdict["cause"]), (137, "kernel-hang"), "status and cause")


def rule__a_fault_is_a_fault_also_with_hang_after(box):
    run, verdict = answer(box, SYNC.replace('"hang"', '"trap"'), "--hang-after", "30s")
    same((run.status, verdict["cause"], verdict["certainty"]), (1, "kernel-trap", "certain"), "a trap")
    same(verdict["waiting"], [], "waiting")
    run, verdict = answer(box, SYNC.replace('"hang"', '"assert_fail"'), "--hang-after", "30s")
    same((run.status, verdict["error"]["code"]), (1, 710), "an assertion")


def rule__a_wait_beside_work_that_progresses_is_reported_and_not_ended(box):
    text = HANG + """
def others():
    cudrv.call("cuCtxSetCurrent", context)
    end = time.time() + 4
    while time.time() < end:
        cudrv.launch(nop, (1,), (1,))
        time.sleep(0.05)
    os.write(1, b"went on\\n")
    os._exit(3)
threading.Thread(target=others, daemon=True).start()
cudrv.synchronize()
"""
    run = subprocess.run([box.cuwhy, "run", "--gpu", "sim:tiny", "--hang-after", "1s"] + box.script(text), capture_output=True, text=True,
                         env=box.env(PYTHONPATH=os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages")), timeout=PATIENCE)
    same((run.returncode, run.stdout), (3, "went on\n"), "the program (%s)" % run.stderr)
    said = [line for line in run.stderr.splitlines() if "waited" in line]
    same(len(said), 1, "said once: %s" % run.stderr)
    assert "other work of it goes on, so this is not taken for a hang" in said[0], said
