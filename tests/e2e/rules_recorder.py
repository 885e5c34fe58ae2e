# SPDX-License-Identifier: Apache-2.0
"""What the recorder must record, and what must neither stop it nor harm the program."""
import functools
import json
import os
import shutil
import signal
import subprocess

from toolbox import PATIENCE, Skip, same

START = "import cudrv, ctypes, os, sys, time\ncontext = cudrv.init()\nnop = cudrv.kernel('nop')\n"


def rule__kill_9_keeps_the_recording(box):
    argv = box.script(START + """
for _ in range(1000):
    cudrv.launch(nop, (1,), (1,))
cudrv.cuda.cuLaunchKernel(nop, 1, 70000, 1, 1, 1, 1, 0, None, None, None)
os.kill(os.getpid(), 9)
""")
    run = box.under(argv)
    same(run.status, 128 + signal.SIGKILL, "status")
    parts = box.parts(run)
    same(len(parts), 1, "parts")
    assert parts[0]["ring_launches"] >= 1000, parts
    same(parts[0]["exit_known"], 0, "exit known")
    verdict = box.verdict(run)
    found = [v["cause"] for v in [verdict] + verdict["notes"]]
    assert "launch-config-grid-limit" in found, found   # a verdict, or a note: it may have survived
    same(verdict["process"]["signal"], 9, "signal")


def rule__a_recording_can_be_judged_again(box):
    run = box.under(box.script(START + "cudrv.launch(nop, (1,), (2048,))\n"))
    first = box.verdict(run)
    again = subprocess.run([box.cuwhy, "explain", "--json", run.folder], capture_output=True,
                           text=True, env=box.env(), timeout=PATIENCE)
    second = json.loads(again.stdout)
    same(again.returncode, 1, "status of explain")
    for key in ("cause", "certainty", "where", "error"):
        same(second[key], first[key], key)


def rule__a_forked_child_never_writes_into_its_parents_recording(box):
    argv = box.script(START + """
cudrv.alloc(64)
pid = os.fork()
if pid == 0:
    for _ in range(50):
        cudrv.cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(64))
    os._exit(0)
os.waitpid(pid, 0)
for _ in range(5):
    cudrv.launch(nop, (1,), (1,))
print(os.getpid(), pid)
""")
    run = box.under(argv)
    same(run.status, 0, "status")
    parent, child = (int(n) for n in run.out.split())
    parts = {p["pid"]: p for p in box.parts(run)}
    same(set(parts), {parent, child}, "processes with a part")
    same(parts[parent]["n_failures"], 0, "failures in the parent's part")
    same(parts[parent]["ring_launches"], 5, "launches in the parent's part")
    same(parts[child]["forked"], 1, "the child is marked as forked")
    same(parts[child]["parent_recorded_pid"], parent, "the child's parent")
    assert parts[child]["n_failures"] >= 1, parts[child]


def rule__a_forked_child_that_leaves_cuda_alone_gets_no_part(box):
    argv = box.script(START + """
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
""")
    run = box.under(argv)
    same(run.status, 0, "status")
    same(len(box.parts(run)), 1, "parts")


def rule__a_vfork_child_does_not_end_its_parents_recording(box):
    """A child of vfork shares the parent's memory; Python's subprocess starts programs that way."""
    run = box.under(box.script(START + """
import signal, subprocess
for _ in range(3):
    try:
        subprocess.run(["/does/not/exist"])
    except FileNotFoundError:
        pass
os.kill(os.getpid(), signal.SIGKILL)
"""))
    part = box.parts(run)[0]
    same(part["exit_known"], 0, "an exit status where there was none (%s)" % part["exit_status"])


def rule__rings_of_dead_threads_are_reused(box):
    program = box.program("threads", "-lcuda", "-lpthread")
    run = box.under([program, "300", "20"])
    same((run.status, run.out), (0, "done 6000\n"), "status and output")
    part = box.parts(run)[0]
    same(part["ring_launches"], 6000, "launches of all threads")
    same(part["lost_threads"], 0, "threads without a ring")
    assert part["rings"] <= 32, "%d rings for threads of which 8 lived at a time" % part["rings"]


def rule__the_recording_stays_bounded(box):
    program = box.program("threads", "-lcuda", "-lpthread")
    run = box.under([program, "16", "30000"])
    same((run.status, run.out), (0, "done 480000\n"), "status and output")
    part = box.parts(run)[0]
    used = os.stat(part["path"]).st_blocks * 512
    assert used <= 64 << 20, "%d bytes on disk" % used
    same(part["ring_launches"], 480000, "launches counted")


def rule__memory_that_goes_without_a_free_is_gone_too(box):
    """One unmap of several mappings, and the reset of a device."""
    run = box.under(box.script(START + """
size = 2 << 20
class Prop(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int) for n in ("type", "handles", "where", "id")] + [("rest", ctypes.c_uint64 * 4)]
prop = Prop(1, 0, 1, 0)
base = ctypes.c_uint64()
cudrv.call("cuMemAddressReserve", ctypes.byref(base), ctypes.c_size_t(4 * size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
for n in range(4):
    handle = ctypes.c_uint64()
    cudrv.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(prop), ctypes.c_uint64(0))
    cudrv.call("cuMemMap", ctypes.c_uint64(base.value + n * size), ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
cudrv.call("cuMemUnmap", base, ctypes.c_size_t(3 * size))
if "reset" in sys.argv:
    cudrv.alloc(1000)
    cudrv.call("cuMemUnmap", ctypes.c_uint64(base.value + 3 * size), ctypes.c_size_t(size))
    cudrv.call("cuDevicePrimaryCtxReset_v2", 0)
os.kill(os.getpid(), 9)
"""))
    same(box.parts(run)[0]["live"], 2, "the reserved range and the one mapping left (%s)" % run.err[-300:])
    run = box.under(run_again(box, "reset"))
    same(box.parts(run)[0]["live_device_bytes"], 0, "bytes on the device after its reset")


def run_again(box, *args):
    return [box.python, os.path.join(box.scratch, "program.py")] + list(args)


GRAPH = START + """
import sys
stream = cudrv.stream()
cudrv.begin_capture(stream)
for _ in range(3):
    cudrv.launch(nop, (1,), (1,), stream=stream)
graph = cudrv.end_capture(stream)
made = cudrv.run_graph(graph, stream)
cudrv.call("cuGraphDestroy", graph)
if "destroy" in sys.argv:
    cudrv.synchronize(stream)
    cudrv.call("cuGraphExecDestroy", made)
for _ in range(20000):
    cudrv.launch(nop, (1,), (1,))
os.kill(os.getpid(), 9)
"""


def rule__captured_launches_are_kept_as_long_as_their_graph(box):
    program = box.script(GRAPH)
    same(box.parts(box.under(program))[0]["captured"], 3, "launches of a graph that can still run")
    same(box.parts(box.under(program + ["destroy"]))[0]["captured"], 0, "launches of a graph that is gone")


def rule__many_live_allocations_are_exact_too(box):
    run = box.under(box.script(START + """
kept = [cudrv.alloc(512) for _ in range(150000)]
for address in kept[::3]:
    cudrv.free(address)
os.kill(os.getpid(), 9)
"""), gpu="sim:h200")
    part = box.parts(run)[0]
    same(part["live"], 100000, "live allocations")
    same((part["lost_allocations"], part["inexact_since_ns"]), (0, 0), "lost, inexact since")


BACKWARD = START + """
torch = ctypes.CDLL(os.environ["FAKE_TORCH"])
engine = ctypes.CDLL(os.environ["FAKE_LAUNCH"])
engine.prepare(context, nop)


def scale():
    return torch.forward()  # <- forward


def shift():
    return torch.forward()


shift()
node = scale()
shift()
torch.backward(node, engine.bad_launch)
raise SystemExit(1)
"""


def rule__a_backward_kernel_is_tied_to_its_forward_line(box):
    torch = box.library("fake_torch", "-lpthread", "-fexceptions")
    launch = box.library("fake_launch", "-lcuda")
    program = box.script(BACKWARD)
    line = BACKWARD.splitlines().index("    return torch.forward()  # <- forward") + 1
    run = box.under(program, FAKE_TORCH=torch, FAKE_LAUNCH=launch)
    same((run.status, run.err.splitlines()[0]), (1, "checked: 1"), "the real functions were called too")
    verdict = box.verdict(run)
    same(verdict["cause"], "launch-config-grid-limit", "cause")
    same(verdict["where"] and verdict["where"]["line"], line, "the forward line")
    same(verdict["where"]["function"], "scale", "its function")
    assert verdict["node"] and "MulBackward0" in str(verdict["node"]), verdict["node"]


THROWN = BACKWARD.replace("torch.backward(node, engine.bad_launch)", "torch.backward_thrown(node, engine.bad_launch)")


def rule__a_node_that_an_exception_left_is_forgotten(box):
    """The engine's function never returns; a later launch on that thread is not the node's."""
    run = box.under(box.script(THROWN), FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"),
                    FAKE_LAUNCH=box.library("fake_launch", "-lcuda"))
    verdict = box.verdict(run)
    same(verdict["cause"], "launch-config-grid-limit", "cause")
    same((verdict["node"], verdict["forward"]), (None, None), "node and forward line")


def rule__the_runtimes_own_refusals_are_seen(box):
    """libcudart decides by itself: no driver call is made, and there is no driver here."""
    library = shutil.copy(box.library("libcudart"), os.path.join(box.scratch, "libcudart.so.13"))
    program = box.program("use_cudart", library)
    run = box.under([program], gpu=None, LD_LIBRARY_PATH=box.scratch)
    same((run.status, run.out), (1, "0 101\n"), "the program's own answers")
    verdict = box.verdict(run)
    same((verdict["cause"], verdict["error"]["code"], verdict["error"]["api"]),
         ("device-ordinal-out-of-range", 101, "cudaSetDevice"), "verdict")


def rule__live_allocations_are_exact(box):
    run = box.under(box.script(START + """
kept = [cudrv.alloc(1000 + n) for n in range(500)]
for address in kept[::2]:
    cudrv.free(address)
for _ in range(3000):
    cudrv.free(cudrv.alloc(64))
"""))
    part = box.parts(run)[0]
    same(part["live"], 250, "live allocations")
    same(part["n_allocs"] - part["n_frees"], 250, "allocations less frees")
    same(part["live_device_bytes"], sum(1000 + n for n in range(1, 500, 2)), "live bytes")


def rule__without_libcuda_it_is_not_there(box):
    program = box.program("inert", "-ldl")
    run = box.under([program], gpu=None)
    plain = box.plain([program])
    same(plain.status, 0, "status of the plain program")
    same((run.status, run.out), (0, plain.out), "what a program without CUDA sees")
    same(box.parts(run), [], "parts of the recording")


def rule__dlclose_and_a_second_dlopen_work(box):
    program = box.program("reopen", "-ldl")
    run = box.under([program])
    same((run.status, run.out), (0, "first 0 second 0 again 0\n"), "status and output")


def rule__a_signal_handler_may_call_cuda(box):
    program = box.program("handler", "-lcuda")
    run = box.under([program])
    same(run.status, 0, "status (%s)" % run.err)
    assert run.out.startswith("handled "), run.out
    same(len(box.parts(run)), 1, "parts")


def rule__no_descriptors_left_hurts_nobody(box):
    argv = box.script("""
import os, resource
import cudrv
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
context = cudrv.init()
data = cudrv.alloc(256)
for _ in range(10):
    cudrv.launch(cudrv.kernel("fill"), (1,), (64,), cudrv.u64(data), cudrv.f32(2), cudrv.i32(64))
print(sum(cudrv.read_floats(data, 64)))
""")
    plain, run = box.plain_sim(argv), box.under(argv)
    same((run.status, run.out, run.status), (plain.status, plain.out, 0), "status and output")


def limited(box, name, value, under):
    """WORK with a limit of its own; pipes, since a limit on files would stop its output."""
    argv = box.script("import resource\nresource.setrlimit(resource.%s, (%d, %d))\n%s" % (
        name, value, value, WORK))
    env = box.env() if under else box.env(LD_LIBRARY_PATH=box.sim, CUWHY_SIM="tiny")
    command = [box.cuwhy, "run", "--gpu", "sim:tiny", "--"] if under else []
    done = subprocess.run(command + argv, capture_output=True, text=True, env=env, timeout=PATIENCE)
    return done.returncode, done.stdout


WORK = START + """
data = cudrv.alloc(256)
cudrv.launch(cudrv.kernel('iota'), (1,), (64,), cudrv.u64(data), cudrv.i32(64))
print(sum(cudrv.read_floats(data, 64)))
"""


def rule__no_room_for_files_hurts_nobody(box):
    plain = limited(box, "RLIMIT_FSIZE", 0, False)
    same(plain[0], 0, "status of the plain program")
    same(limited(box, "RLIMIT_FSIZE", 0, True), plain, "status and output")


def rule__little_address_space_hurts_nobody(box):
    """The minimum that the program needs, plus what the recorder may use."""
    low, high = 64, 4096
    if limited(box, "RLIMIT_AS", high << 20, False)[0]:
        raise Skip("the program alone needs more than %d MiB" % high)
    while high - low > 16:
        middle = (low + high) // 2
        low, high = (low, middle) if limited(box, "RLIMIT_AS", middle << 20, False)[0] == 0 else (
            middle, high)
    plain = limited(box, "RLIMIT_AS", high + 96 << 20, False)
    same(limited(box, "RLIMIT_AS", high + 96 << 20, True), plain, "status and output")


def rule__a_full_disk_for_the_recording_hurts_nobody(box):
    place = os.path.join(box.scratch, "small")
    os.mkdir(place)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", place],
                                      capture_output=True).returncode:
        raise Skip("a small file system cannot be mounted here")
    try:
        argv = box.script(START + "print('worked')\ncudrv.launch(nop, (1,), (2048,))\n")
        run = subprocess.run([box.cuwhy, "run", "--out", os.path.join(place, "r"), "--gpu",
                              "sim:tiny", "--"] + argv, capture_output=True, text=True,
                             env=box.env(), timeout=PATIENCE)
        same((run.returncode, run.stdout), (1, "worked\n"), "status and output")
        assert "cuwhy" in run.stderr, "nothing is said about the full disk"
    finally:
        subprocess.run(["umount", place], check=True)


def rule__an_unwritable_folder_hurts_nobody(box):
    blocker = os.path.join(box.scratch, "file")
    with open(blocker, "w", encoding="utf-8"):
        pass
    run = subprocess.run([box.cuwhy, "run", "--out", os.path.join(blocker, "r"), "/bin/echo", "hi"],
                         capture_output=True, text=True, env=box.env(), timeout=PATIENCE)
    same((run.returncode, run.stdout), (0, "hi\n"), "status and output")
    assert run.stderr.startswith("cuwhy"), run.stderr


def rule__a_recorder_without_its_cuwhy_hurts_nobody(box):
    argv = box.script(WORK)
    plain = box.plain_sim(argv)
    for sock in (None, "/nowhere/s", os.path.join(box.scratch, "x" * 200)):
        env = {"LD_PRELOAD": box.recorder}
        if sock:
            env["CUWHY_SOCK"] = sock
        run = box.plain_sim(argv, **env)
        same((run.status, run.out, run.err), (plain.status, plain.out, plain.err),
             "program with CUWHY_SOCK=%s" % sock)


def rule__it_can_be_paused_and_resumed(box):
    run = box.under(box.script(START + """
pause = ctypes.CDLL(None).cuwhy_rec_pause
states = [pause(1)]
for _ in range(100):
    cudrv.launch(nop, (1,), (1,))
states += [pause(0), pause(0)]
for _ in range(7):
    cudrv.launch(nop, (1,), (1,))
print(states)
"""))
    same((run.status, run.out), (0, "[0, 1, 0]\n"), "status and output")
    same(box.parts(run)[0]["ring_launches"], 7, "launches recorded")


@functools.lru_cache(None)
def find_pythons():
    """Interpreters of every version that the recorder claims, as far as this machine has them."""
    found = {}
    for minor in range(9, 15):
        version = "3.%d" % minor
        roots = [os.path.expanduser("~/.pyenv/versions")]
        places = [os.path.join(r, d, "bin", "python" + version) for r in roots if os.path.isdir(r)
                  for d in sorted(os.listdir(r)) if d.startswith(version)]
        for place in places + [shutil.which("python" + version) or ""]:
            if place and os.access(place, os.X_OK) and subprocess.run(
                    [place, "-c", "import ctypes"], capture_output=True).returncode == 0:
                found.setdefault(version, place)
    return found


def rule__python_lines_are_right_in_every_version_here(box):
    pythons = find_pythons()
    if not pythons:
        raise Skip("no python3.9 to python3.14 here")
    text = START + """

class Deep:
    def __init__(self, n):
        self.n = n

    def go(self):
        if self.n:
            return [Deep(self.n - 1).go() for _ in (1,)]
        return (lambda: cudrv.launch(nop, (1,), (4096,)))()


def gen():
    yield Deep(10).go()


list(gen())
"""
    argv = box.script(text)
    line = [n for n, l in enumerate(text.splitlines(), 1) if "4096" in l][0]
    for version, python in sorted(pythons.items()):
        run = box.under([python] + argv[1:])
        same(run.status, 1, version + ": status")
        verdict = box.verdict(run)
        same(verdict["cause"], "launch-config-block-limit", version + ": cause")
        same(verdict["where"].get("line"), line, version + ": line")
        outer = [f["line"] for f in verdict["where"]["stack"]][-1]
        same(outer, len(text.splitlines()), version + ": outermost line")


FREE_THREADED = """
import ctypes
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
assert ctypes.string_at(runtime, 8) == b"xdebugpy"
ctypes.c_uint64.from_address(runtime + 16).value = 1     # as in a build without the GIL
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (4096,))
"""


def rule__free_threaded_python_is_told_in_one_sentence_and_not_harmed(box):
    pythons = {v: p for v, p in find_pythons().items() if v in ("3.13", "3.14")}
    if not pythons:
        raise Skip("no python3.13 or later here")
    for version, python in sorted(pythons.items()):
        run = box.under([python] + box.script(FREE_THREADED)[1:])
        verdict = box.verdict(run)
        same((run.status, verdict["cause"], box.parts(run)[0]["frames_off_because"]), (1, "launch-config-block-limit", 8), version)
        text = subprocess.run([box.cuwhy, "explain", "-v", run.folder], capture_output=True, text=True, env=box.env(), timeout=PATIENCE).stdout
        same(text.count("free-threaded Python is not supported yet"), 1, version + ": sentences in " + text)


LIES = """
import ctypes, mmap, cudrv
function = ctypes.cast(ctypes.pythonapi.PyFrame_GetLineNumber, ctypes.c_void_p).value
page = function & ~(mmap.PAGESIZE - 1)
if ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(2 * mmap.PAGESIZE), 7) != 0:
    raise SystemExit(77)
ctypes.memmove(function, bytes.fromhex("b839300000c3"), 6)    # mov eax, 12345; ret
cudrv.cuda = ctypes.PyDLL("libcuda.so.1")    # calls with the GIL held, as PyTorch's are
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1, 1, 70000), (1,))
"""


def rule__frames_that_differ_from_pythons_own_are_switched_off(box):
    """A wrong line is worse than none: here Python's own account says 12345."""
    run = box.under(box.script(LIES))
    if run.status == 77:
        return      # a kernel that does not allow changing code
    same(box.verdict(run)["cause"], "launch-config-grid-limit", "cause")
    same([part["frames_off_because"] for part in box.parts(run)], [4], "frames are off because they differ")


def rule__a_process_that_hardly_uses_cuda_touches_little_memory(box):
    text = """
import cudrv, os, resource
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
child = os.fork()
if child == 0:
    before = faults()
    cudrv.init()
    print(faults() - before, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    plain, run = box.plain_sim(box.script(text)), box.under(box.script(text), "--no-core-dump")
    more = int(run.out) - int(plain.out)
    assert more < 500, "%d more page faults (%s, without cuwhy %s)" % (more, run.out, plain.out)
