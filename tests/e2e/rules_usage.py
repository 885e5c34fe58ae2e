# SPDX-License-Identifier: Apache-2.0
"""Who is using the GPUs: `cuwhy memory` for the machine, and the sample that is taken when memory runs out."""
import fcntl
import glob
import json
import os
import struct
import subprocess
import termios
import time

from toolbox import PATIENCE, Skip, same

MIB = 1 << 20
FILL = """
import cudrv, os, sys
cudrv.init()
pile = []
"""
OOM = FILL + "while True:\n    pile.append(cudrv.alloc(8 << 20))\n"
HANDLED = FILL + """
try:
    while True:
        pile.append(cudrv.alloc(8 << 20))
except cudrv.CudaError:
    pass
"""


# Tests may run in a container themselves: then a pid that no process has, or a zombie, may be from another namespace.
IN_CONTAINER = os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"
GONE, ZOMBIE = ("outside", "unknown") if IN_CONTAINER else ("gone", "zombie")


class Holder:
    """A process that has the driver loaded."""

    def __init__(self, box):
        self.argv = [box.python, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(flush=True); input()",
                     os.path.join(box.sim, "libcuda.so.1")]

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.pid, self.command = self.process.pid, " ".join(self.argv)[:159]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def machine(box, words, *options, sim=True):
    env = box.env(CUWHY_SIM="tiny", **({"CUWHY_SIM_NVML": words} if words else {}))
    if sim:
        env["LD_LIBRARY_PATH"] = box.sim
    return subprocess.run([box.cuwhy, "memory"] + list(options), capture_output=True, text=True, env=env, timeout=PATIENCE)


def machine_json(box, words, status=0):
    answer = machine(box, words, "--json")
    same((answer.returncode, answer.stderr), (status, ""), "status and stderr")
    return json.loads(answer.stdout)


def sampled(box, text, words, **more):
    run = box.under(box.script(text), CUWHY_SIM_NVML=words, **more)
    found = glob.glob(os.path.join(run.folder, "*.usage.json"))
    assert len(found) <= 1, found
    if not found:
        return run, None
    with open(found[0], encoding="utf-8") as stream:
        return run, json.load(stream)


# ---- the machine ---------------------------------------------------------------------------------------------------

def rule__every_gpu_and_its_holders_are_told(box):
    with Holder(box) as other:
        words = "gpu=64G,reserved=1G,proc=%d:20G,proc=%d:4M:graphics,proc=99999999:3G,gpu=8G"
        told = machine_json(box, words % (other.pid, other.pid))
    same(told["driver"], "580.00.00", "driver")
    first, second = told["gpus"]
    same([first[k] for k in ("index", "total", "reserved", "used", "free")],
         [0, 64 << 30, 1 << 30, (23 << 30) + 4 * MIB, (40 << 30) - 4 * MIB], "first GPU")
    same((second["index"], second["total"], second["used"], second["processes"]), (1, 8 << 30, 0, []), "second GPU")
    assert first["uuid"] != second["uuid"] and first["pci"] != second["pci"], told
    mine, gone = first["processes"]
    same((mine["pid"], mine["bytes"], mine["kind"], mine["state"], mine["own_user"], mine["command"]),
         (other.pid, 20 << 30, ["compute", "graphics"], "running", True, other.command), "the largest")
    same((gone["pid"], gone["bytes"], gone["state"], gone["command"]), (99999999, 3 << 30, GONE, None), "one that ended")


def rule__the_table_names_the_command_and_what_nobody_owns(box):
    with Holder(box) as other:
        answer = machine(box, "gpu=64G,reserved=1G,used=21G,proc=%d:20G" % other.pid)
    same((answer.returncode, answer.stderr), (0, ""), "status and stderr")
    lines = [line.split() for line in answer.stdout.splitlines()]
    same(lines[1], "used 21.0 GiB of 64.0 GiB, free 42.0 GiB, driver's reserve 1.0 GiB".split(), "sums")
    same(lines[3], ["20.0", "GiB", str(other.pid), "compute"] + other.command.split(), "holder")
    same(lines[4], "1.0 GiB - used by no process that the driver lists".split(), "rest")


def rule__a_zombie_is_told_as_one(box):
    child = subprocess.Popen(["true"])
    while open("/proc/%d/stat" % child.pid, encoding="utf-8").read().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.01)
    told = machine_json(box, "gpu,proc=%d:1M" % child.pid)
    child.wait()
    same(told["gpus"][0]["processes"][0]["state"], ZOMBIE, "state")


def rule__bytes_that_are_not_available_are_one_unattributed_line(box):
    words = "gpu=16G,mig,used=9G,proc=1:na:compute:1,proc=1:na:compute:2"
    gpu = machine_json(box, words)["gpus"][0]
    same([(p["pid"], p["bytes"], p["mig_instance"]) for p in gpu["processes"]], [(1, None, 1), (1, None, 2)], "processes")
    same((gpu["mig"], gpu["unattributed"]), (True, 9 << 30), "rest")
    text = machine(box, words).stdout
    same(text.count("the driver does not say how much of this each process uses"), 1, "lines in\n" + text)
    assert "9.0 GiB         -" in text, text


def rule__every_layout_of_the_process_list_is_understood(box):
    for entry in (16, 24, 32):
        told = machine_json(box, "gpu=64G,entry=%d,proc=1:3G,proc=2147480001:2G,proc=2147480002:1G" % entry)
        same([(p["pid"], p["bytes"] >> 30) for p in told["gpus"][0]["processes"]],
             [(1, 3), (2147480001, 2), (2147480002, 1)], "entries of %d bytes" % entry)


def rule__a_list_longer_than_expected_is_read_in_full(box):
    told = machine_json(box, "gpu=64G," + ",".join("proc=%d:%dM" % (2147480000 + i, i + 1) for i in range(200)))
    same(len(told["gpus"][0]["processes"]), 200, "processes")
    same(told["gpus"][0]["unattributed"], 0, "rest")


def rule__an_old_driver_without_a_reserve_is_no_failure(box):
    gpu = machine_json(box, "v1,gpu=64M,reserved=1M,proc=1:10M")["gpus"][0]
    same((gpu["total"], gpu["reserved"], gpu["used"], gpu["free"]), (64 * MIB, None, 11 * MIB, 53 * MIB), "memory")


def rule__without_a_driver_memory_says_so(box):
    answer = machine(box, None, sim=False)
    if answer.returncode == 0 or "no NVIDIA driver" not in answer.stderr:
        raise Skip("this machine has an NVIDIA driver")
    same((answer.returncode, answer.stdout), (2, ""), "status and stdout")
    told = json.loads(machine(box, None, "--json", sim=False).stdout)
    assert "there is no NVIDIA driver on this machine" in told["failure"]["message"], told


def rule__a_driver_that_refuses_is_quoted(box):
    answer = machine(box, "gpu,fail=nvmlInit_v2:9")
    same(answer.returncode, 2, "status")
    assert "NVML failed to start: Driver Not Loaded (NVML error 9)" in answer.stderr, answer.stderr


def rule__no_gpu_is_said_plainly(box):
    answer = machine(box, "fail=nvmlShutdown:1")
    same((answer.returncode, answer.stdout), (2, ""), "status and stdout")
    assert "there is no GPU" in answer.stderr, answer.stderr


def rule__a_gpu_without_figures_is_still_listed(box):
    answer = machine(box, "gpu,gpu,fail=nvmlDeviceGetMemoryInfo_v2:15,fail=nvmlDeviceGetMemoryInfo:15")
    same((answer.returncode, answer.stdout.count("its memory could not be queried")), (0, 2), "answer")


def rule__a_gpu_that_is_lost_does_not_hide_the_others(box):
    answer = machine(box, "gpu=1G,lost,gpu=2G,proc=1:1G")
    same((answer.returncode, answer.stdout.count("  used ")), (2, 1), "status and GPUs told")
    assert "used 1.0 GiB of 2.0 GiB" in answer.stdout and "GPU 1" in answer.stdout, answer.stdout
    assert "incomplete: NVML failed to open a GPU: GPU is lost (NVML error 15)" in answer.stderr, answer.stderr


def rule__a_hanging_driver_is_left_after_two_seconds(box):
    """Not earlier. How much later is up to the machine; the simulated driver hangs for ever."""
    began = time.monotonic()
    answer = machine(box, "gpu,hang=nvmlInit_v2")
    took = time.monotonic() - began
    same((answer.returncode, answer.stdout), (2, ""), "status and stdout")
    assert "did not answer within 2 seconds" in answer.stderr and took > 1.9, (took, answer.stderr)


def rule__what_was_told_before_a_hang_counts(box):
    answer = machine(box, "gpu=64G,proc=1:10G,hang=nvmlDeviceGetGraphicsRunningProcesses_v3")
    same(answer.returncode, 2, "status")
    assert "used 10.0 GiB of 64.0 GiB" in answer.stdout and "10.0 GiB         1" in answer.stdout, answer.stdout
    assert answer.stderr.startswith("cuwhy: incomplete: the NVIDIA driver (NVML) did not answer"), answer.stderr


def read_all(terminal):
    """What was written to a terminal that is no longer open; it comes in pieces."""
    text = b""
    try:
        while piece := os.read(terminal, 4096):
            text += piece
    except OSError:  # the end
        pass
    return text


def rule__long_commands_are_cut_at_the_width_of_a_terminal(box):
    with Holder(box) as other:
        env = box.env(CUWHY_SIM="tiny", LD_LIBRARY_PATH=box.sim, CUWHY_SIM_NVML="gpu,proc=%d:1M" % other.pid)
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        subprocess.run([box.cuwhy, "memory"], stdout=its, env=env, timeout=PATIENCE)
        os.close(its)
        lines = read_all(ours).decode().splitlines()
        os.close(ours)
    same(lines[3].split()[4], other.command[:26].split()[0], "command")
    same(len(lines[3]), 60, "columns of %r" % lines[3])


def rule__a_crashing_driver_is_not_our_crash(box):
    answer = machine(box, "gpu,crash=nvmlDeviceGetCount_v2")
    same((answer.returncode, answer.stdout), (2, ""), "status and stdout")
    assert "crashed: signal 11" in answer.stderr, answer.stderr


# ---- the moment of failure -----------------------------------------------------------------------------------------

def rule__memory_that_runs_out_is_sampled_at_once(box):
    with Holder(box) as other:
        run, told = sampled(box, OOM, "gpu,reserved=1M,proc=%d:10M" % other.pid)
    same(run.status, 1, "status")
    same([(p["pid"], p["bytes"], p["command"]) for p in told["gpus"][0]["processes"]],
         [(other.pid, 10 * MIB, other.command)], "who holds the GPU")
    same(told["trouble"], "none", "trouble")


def rule__the_failing_process_is_alive_in_the_sample(box):
    where = os.path.join(box.scratch, "nvml")
    text = OOM.replace("pile = []", "pile = []\nopen(%r, 'w').write('gpu,proc=%%d:60M' %% os.getpid())" % where)
    text = text.replace("while True:", "import linger\nwhile True:")
    run, told = sampled(box, text, "@" + where)
    process = told["gpus"][0]["processes"][0]
    same((process["pid"], process["state"]), (box.verdict(run)["process"]["pid"], "running"), "the program itself")


def rule__a_handled_failure_is_sampled_too(box):
    run, told = sampled(box, HANDLED, "gpu,proc=1:1M")
    same((run.status, box.verdict(run)["cause"]), (0, "none"), "verdict")
    same(told["gpus"][0]["used"], MIB, "used")


def rule__nothing_is_sampled_without_need(box):
    run, told = sampled(box, FILL + "cudrv.alloc(4096)\n", "gpu,hang=nvmlInit_v2")
    same((run.status, told), (0, None), "sample")


def rule__a_program_that_fails_all_the_time_costs_one_look_a_second(box):
    text = "import time\nbegan = time.monotonic()\n" + HANDLED + \
        "for i in range(2000):\n    try: cudrv.alloc(1 << 30)\n    except cudrv.CudaError: pass\nprint(time.monotonic() - began)\n"
    run = box.under(box.script(text), CUWHY_SIM_NVML="gpu", CUWHY_DEBUG="probe:1", out=True)
    looks, seconds = run.err.count("1 GPUs; complete"), float(run.out)
    assert 1 <= looks <= 3 + seconds, "%d looks in %.1f s\n%s" % (looks, seconds, run.err)


def rule__a_hanging_driver_does_not_hold_up_the_verdict(box):
    run, told = sampled(box, OOM, "gpu,hang=nvmlInit_v2")
    same((run.status, told["gpus"]), (1, []), "status and sample")
    same(told["trouble"], "hung", "trouble")
    assert "did not answer" in told["why"], told
    same(box.verdict(run)["error"]["code"], 2, "verdict")


def rule__preloads_of_the_program_do_not_reach_the_probe(box):
    """The recorder is one of them, and a library that shows the program less memory than there is may be another."""
    tell = os.path.join(box.scratch, "told")
    run = box.under(box.script(OOM), CUWHY_SIM_NVML="gpu", LD_PRELOAD=box.library("preload_tell"), CUWHY_TEST_TELL=tell)
    names = open(tell, encoding="utf-8").read().split()
    assert names and "cuwhy-probe" not in names, names
    with open(glob.glob(os.path.join(run.folder, "*.usage.json"))[0], encoding="utf-8") as stream:
        same(json.load(stream)["trouble"], "none", "trouble")


def rule__in_a_container_pids_of_the_host_are_outside(box):
    """A separate pid namespace, and an NVML that reports the host's pids, as older drivers do."""
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run(inside + ["true"], capture_output=True).returncode:
        raise Skip("no pid namespaces for this user")
    env = box.env(CUWHY_SIM="tiny", LD_LIBRARY_PATH=box.sim, CUWHY_SIM_NVML="gpu,proc=1:2M,proc=2147480001:1M")
    answer = subprocess.run(inside + [box.cuwhy, "memory", "--json"], capture_output=True, text=True, env=env, timeout=PATIENCE)
    same(answer.returncode, 0, "status")
    same([(p["pid"], p["state"], p["command"]) for p in json.loads(answer.stdout)["gpus"][0]["processes"]],
         [(1, "outside", None), (2147480001, "outside", None)], "processes")


def rule__explain_reads_the_sample_again(box):
    run, _ = sampled(box, OOM, "gpu,proc=1:1M")
    path = glob.glob(os.path.join(run.folder, "*.usage.json"))[0]
    for text in (None, "{", '{"gpus": [1, {"processes": [null, {"pid": -1, "bytes": 1e9, "kind": "x"}]}]}'):
        if text:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        again = subprocess.run([box.cuwhy, "explain", "--json", run.folder], capture_output=True, text=True, env=box.env())
        same((again.returncode, json.loads(again.stdout)["cause"]), (1, box.verdict(run)["cause"]), "with %r" % text)


# ---- another GPU as a way out --------------------------------------------------------------------------------------

def other_gpu(box, words, program=OOM, **env):
    """What the verdict says about it, and all its fixes as one text. The card has 64 MiB, the other one is `words`."""
    run = box.under(box.script(program), gpu="sim:tiny,devices=2", CUWHY_SIM_NVML="gpu," + words, **env)
    verdict = box.verdict(run)
    return verdict["memory"]["other_gpu"], "\n".join("%s %s" % (fix["text"], fix["command"]) for fix in verdict["fix"])


def rule__a_gpu_that_is_free_is_named_as_a_way_out(box):
    told, fixes = other_gpu(box, "gpu=128M")
    same((told["index"], told["device"], told["free"]), (1, 1, 128 * MIB), "the free one")
    assert 64 * MIB < told["needed"] < 80 * MIB, told
    assert "CUDA_VISIBLE_DEVICES=1 python" in fixes and 'torch.device("cuda", 1)' in fixes, fixes
    told, fixes = other_gpu(box, "gpu=128M", CUDA_VISIBLE_DEVICES="0")
    same((told["index"], told["device"]), (1, None), "one that the program does not see")
    assert "CUDA_VISIBLE_DEVICES=1 python" in fixes and "torch.device" not in fixes, fixes


def rule__a_gpu_that_does_not_help_is_not_named(box):
    both = OOM.replace("cudrv.init()", "cudrv.init(1)\ncudrv.alloc(1 << 20)\ncudrv.init()")
    for words, why in (("gpu=128M,proc=2:100M", "busy"), ("gpu", "no larger"), ("gpu=128M,mig", "divided"), ("gpu=128M,lost", "fallen off the bus")):
        told, fixes = other_gpu(box, words)
        same(told, None, why)
        assert 'torch.device("cuda"' not in fixes, fixes
    same(other_gpu(box, "gpu=128M", both)[0], None, "the program uses it already")
    same(other_gpu(box, "gpu=128M", RANK="0", WORLD_SIZE="2", LOCAL_RANK="0")[0], None, "another rank has it")


SHARED = """
import subprocess, sys
hold = "import cudrv; cudrv.init(); cudrv.alloc(40 << 20); print(flush=True); input()"
other = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
other.stdout.readline()
try:
    exec(%r)
finally:
    other.communicate(b"\\n")
""" % OOM


def rule__the_way_out_of_a_card_that_another_process_has_is_the_free_one(box):
    """Of two cards, as the simulated driver counts them: no NVML is planned here."""
    run = box.under(box.script(SHARED), gpu="sim:tiny,devices=2")
    verdict = box.verdict(run)
    same((verdict["cause"], verdict["memory"]["other_gpu"]["index"]), ("oom-other-process", 1), "cause, and the GPU that is free")
    assert verdict["memory"]["other_gpu"]["needed"] < 40 * MIB, verdict["memory"]
