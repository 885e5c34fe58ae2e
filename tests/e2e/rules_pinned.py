# SPDX-License-Identifier: Apache-2.0
"""Failed allocations of pinned host memory: which limit was hit, sampled while the program was still there."""
import glob
import json
import os
import resource

from rules_oom import memory
from toolbox import same

MIB = 1 << 20
START = """
import cudrv, ctypes, linger, resource
cudrv.init()
def pin(size):
    out = ctypes.c_void_p()
    cudrv.call("cuMemAllocHost_v2", ctypes.byref(out), ctypes.c_size_t(size))
pin(3 << 20)
"""
TOO_MUCH = START + "pin(1 << 47)\n"
# With CAP_IPC_LOCK there is no lock limit, so the capability is dropped.
LOCKED = START + """
libc = ctypes.CDLL(None, use_errno=True)
head, caps = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.syscall(125, head, caps) == 0
caps[0] &= ~(1 << 14)
assert libc.syscall(126, head, caps) == 0
resource.setrlimit(resource.RLIMIT_MEMLOCK, (4 << 20, 4 << 20))
pin(2 << 20)
"""


def failed(box, program, **env):
    run = box.under(box.script(program), **env)
    same(run.status, 1, "status (%s)" % run.err[-300:])
    verdict = box.verdict(run)
    same((verdict["cause"], verdict["certainty"]), ("oom-pinned-host", "certain"), "cause")
    with open(glob.glob(os.path.join(run.folder, "*.ram.json"))[0], encoding="utf-8") as stream:
        return run, verdict, json.load(stream)


def rule__more_than_the_ram_is_told_with_the_ram(box):
    run, verdict, ram = failed(box, TOO_MUCH)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    same(ram["total"], total, "RAM")
    assert 0 < ram["available"] <= total, ram
    assert any("too little" in why for why in verdict["why"]), verdict["why"]
    assert any("holds 3.0 MiB of pinned memory" in why for why in verdict["why"]), verdict["why"]
    shown = memory(box, run.folder)
    for words in ("pinned host memory of process", "3.0 MiB, at most 3.0 MiB", "available of", "lock limit (ulimit -l)",
                  "container (cgroup)"):
        assert words in shown.stdout, (words, shown.stdout)
    host = json.loads(memory(box, "--json", run.folder).stdout)["host"][0]
    same((host["pinned"], host["peak"], host["ram"]), (3 * MIB, 3 * MIB, ram), "in JSON")


OTHER_HOST = START + """
import os, sys
if len(sys.argv) < 2:
    import subprocess
    child = subprocess.Popen([sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.read(1)
    pin(8 << 20)
pin(8 << 20)
os.write(1, b"x")
sys.stdin.read()
"""


def rule__a_dry_run_cites_the_simulated_host(box):
    _, verdict, ram = failed(box, TOO_MUCH, gpu="sim:tiny,ram=64M")
    same((ram["total"], ram["available"]), (64 * MIB, 61 * MIB), "what there was, and was left")
    same((ram["cgroup_limit"], ram["lock_limit"]), ("unlimited", "unlimited"), "it has no other limits")
    assert any("the simulated host had 61.0 MiB of 64.0 MiB of RAM left" in why for why in verdict["why"]), verdict["why"]
    assert any("use a host with" in fix["text"] for fix in verdict["fix"]), verdict["fix"]


def rule__what_all_processes_pinned_is_gone_from_the_simulated_host(box):
    _, _, ram = failed(box, OTHER_HOST, gpu="sim:tiny,ram=24M")
    same((ram["total"], ram["available"]), (24 * MIB, 2 * MIB), "two processes have 3 and 8 MiB each, and the second request of one failed")


def rule__the_lock_limit_of_the_program_is_the_one_that_counts(box):
    _, verdict, ram = failed(box, LOCKED, gpu="sim:tiny,fail=cuMemAllocHost:2:2")
    same(ram["lock_limit"], 4 * MIB, "the limit that the program gave itself")
    assert ram["lock_limit"] != resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], "not ours"
    assert any("the process may lock 4.0 MiB" in why for why in verdict["why"]), verdict["why"]
    assert any("5120 KiB or more" in fix["text"] and "ulimit -l unlimited" in fix["command"] for fix in verdict["fix"]), \
        verdict["fix"]


def rule__force_replaces_such_a_recording(box):
    run, _, _ = failed(box, TOO_MUCH)
    again = box.plain([box.cuwhy, "run", "--gpu", "sim:tiny", "--out", run.folder, "--force", "--", "true"])
    same((again.status, glob.glob(os.path.join(run.folder, "*.ram.json"))), (0, []), "what is left of it (%s)" % again.err)


def rule__explain_reads_the_limits_again(box):
    run, verdict, _ = failed(box, TOO_MUCH)
    path = glob.glob(os.path.join(run.folder, "*.ram.json"))[0]
    for text in (None, "{", "[]", '{"schema":1,"total":"x"}'):
        if text:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        again = box.plain([box.cuwhy, "explain", "--json", run.folder])
        same((again.status, json.loads(again.out)["cause"]), (1, "oom-pinned-host"), "with %r" % text)
        if not text:
            same(json.loads(again.out)["why"], verdict["why"], "why")
