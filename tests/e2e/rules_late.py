# SPDX-License-Identifier: Apache-2.0
"""A single stray store is reported late when dumps are armed: the recorder's look at the GPU after calls that wait."""
import os

from toolbox import same

HERE = os.path.dirname(os.path.abspath(__file__))
START = """
import ctypes, os, sys, threading, time, cudrv
p, l, i, u64, ref = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int, ctypes.c_uint64, ctypes.byref
context = cudrv.init()
data = cudrv.alloc(4096)
def stray(func=None, stream=None):
    cudrv.launch(func or cudrv.kernel("oob_store"), (1,), (1,), p(data), l(1 << 40), stream=stream)
def stock(name, library=False):
    image = ctypes.c_char.in_dll(ctypes.CDLL(os.environ["STOCK"]), "stock_image")
    owner, out = ctypes.c_void_p(), ctypes.c_void_p()
    if library:
        cudrv.call("cuLibraryLoadData", ref(owner), ref(image), None, None, 0, None, None, 0)
        cudrv.call("cuLibraryGetKernel", ref(out), owner, name.encode())
    else:
        cudrv.call("cuModuleLoadData", ref(owner), ref(image))
        cudrv.call("cuModuleGetFunction", ref(out), owner, name.encode())
    return out
"""
LATE = "sim:tiny,late_dumps"


def stock_library(box):
    return box.library("libtorch_cuda_sim")


def plain(box, program, gpu=LATE):
    """Without cuwhy."""
    return box.plain_sim(program, gpu=gpu[len("sim:"):], PYTHONPATH=os.path.join(HERE, "site-packages"),
                         STOCK=stock_library(box))


def under(box, program, *options, gpu=LATE, **env):
    return box.under(program, *options, gpu=gpu, STOCK=stock_library(box), **env)


def as_without(box, text, gpu=LATE, **env):
    """The program's status and output are the same with and without cuwhy. The simulated GPU stands still for 80 ms after a stray store;
    who gets no processor for so long, on a loaded machine, looks too late and learns of the error by its next call: then once more."""
    program = box.script(START + text)
    alone = plain(box, program, gpu)
    for _ in range(4):
        run = under(box, program, gpu=gpu, **env)
        if (run.status, run.out) == (alone.status, alone.out):
            break
    same((run.status, run.out), (alone.status, alone.out), "status and output (%s)" % run.err[-600:])
    return run


def looks(box, run, expected):
    """On a loaded machine the simulated GPU is slow, and after false alarms there are fewer looks."""
    part, = box.parts(run)
    if not part["n_false_looks"]:
        same(part["n_looks"], expected, "looks")
    assert part["n_looks"] <= expected, part["n_looks"]


WAITS = """
event, host = ctypes.c_void_p(), (ctypes.c_float * 4)()
cudrv.call("cuEventCreate", ref(event), 2)
print("begins", flush=True)
stray()
cudrv.call("cuEventRecord", event, None)
%s
print("waited", flush=True)
"""
CALLS = ('cudrv.call("cuCtxSynchronize")', 'cudrv.call("cuStreamSynchronize", None)',
         'cudrv.call("cuEventSynchronize", event)', "cudrv.read_floats(data, 4)")


def rule__a_stray_store_is_raised_by_the_call_that_waits(box):
    for call in CALLS:
        run = as_without(box, WAITS % call)
        same((run.status, run.out), (1, "begins\n"), "the program behind %s" % call)
        verdict = box.verdict(run)
        same((verdict["cause"], verdict["certainty"]), ("illegal-access-out-of-bounds", "certain"), call)


def why(verdict):
    return " ".join(verdict["why"])


def rule__a_thread_that_is_gone_is_computed_from_its_launch(box):
    """The dump has the instruction alone. Of three launches in one stream, the second leaves its memory."""
    run = under(box, box.script(START + """
func, other = cudrv.kernel("oob_store"), cudrv.alloc(8192)
cudrv.launch(func, (2,), (64,), p(data), l(4))
cudrv.launch(func, (2,), (64,), p(other), l((2 << 20) - 100))
cudrv.launch(func, (2,), (64,), p(data), l(0))
cudrv.synchronize()
"""))
    verdict = box.verdict(run)
    same((verdict["cause"], verdict["certainty"]), ("illegal-access-out-of-bounds", "certain"), why(verdict))
    fault = verdict["fault"]
    same((verdict["kernel"]["grid"], fault["block"], fault["thread"], fault["memory"]["in"]), ([2, 1, 1], [0, 0, 0], [0, 0, 0], "near"), "the fault")
    assert "computed from the kernel's code and its arguments" in why(verdict), why(verdict)
    assert "allocated at" in why(verdict), why(verdict)
    same(verdict["where"]["source"], "cudrv.launch(func, (2,), (64,), p(other), l((2 << 20) - 100))", "the line")


GUARDED = """
func = cudrv.kernel("oob_store")
gone = cudrv.alloc(4096)
cudrv.launch(func, (1,), (32,), p(gone), l(0))
cudrv.synchronize()
cudrv.call("cuMemFree_v2", p(gone))
cudrv.launch(func, (1,), (32,), p(%s), l(%d))
cudrv.synchronize()
"""


def rule__guard_mode_names_what_a_thread_that_is_gone_has_hit(box):
    """Also where its code cannot be executed: then by the arguments of the launch, and never for certain."""
    for gpu, sure in (("sim:h200,late_dumps", "certain"), ("sim:rtx5090,late_dumps", "likely")):
        verdict = box.verdict(under(box, box.script(START + GUARDED % ("gone", 5)), "--guard", gpu=gpu))
        same((verdict["cause"], verdict["certainty"]), ("illegal-access-use-after-free", sure), "%s: %s" % (gpu, why(verdict)))
        assert "freed at" in why(verdict), why(verdict)
        verdict = box.verdict(under(box, box.script(START + GUARDED % ("data", 1000)), "--guard", gpu=gpu))
        same((verdict["cause"], verdict["certainty"]), ("illegal-access-out-of-bounds", sure), "%s: %s" % (gpu, why(verdict)))
        assert "allocated at" in why(verdict), why(verdict)


def rule__a_stray_store_of_stock_code_is_raised_later(box):
    """The price of looking only where it is needed; the program still fails."""
    program = box.script(START + 'stray(stock("oob_store"))\ncudrv.synchronize()\nprint("waited", flush=True)\n')
    run = under(box, program)
    same((run.status, run.out, box.verdict(run)["cause"]), (1, "waited\n", "illegal-access-out-of-bounds"), "what it saw")


def rule__code_loaded_before_there_is_a_context_is_looked_after(box):
    """As an extension's is, by the CUDA runtime."""
    as_without(box, """
cudrv.call("cuCtxSetCurrent", None)
owner, out = ctypes.c_void_p(), ctypes.c_void_p()
cudrv.call("cuLibraryLoadData", ref(owner), cudrv.image("oob_store"), None, None, 0, None, None, 0)
cudrv.call("cuLibraryGetKernel", ref(out), owner, b"oob_store")
cudrv.call("cuCtxSetCurrent", context)
stray(out)
cudrv.synchronize()
print("waited")
""")


def rule__healthy_programs_look_only_behind_code_that_is_not_stock(box):
    text = """
nop = %s
for n in range(10):
    cudrv.launch(nop, (1,), (1,))
    cudrv.launch(nop, (1,), (1,))
    for m in range(3):
        cudrv.synchronize()
"""
    for kernel, number in (('stock("nop")', 0), ('stock("nop", library=True)', 0), ('cudrv.kernel("nop")', 10)):
        run = as_without(box, text % kernel)
        looks(box, run, number)
        same(box.verdict(run)["cause"], "none", kernel)


def rule__stock_code_stays_stock_when_other_code_is_unloaded(box):
    """Handles are then doubtful; the driver says which code a function belongs to."""
    for library in (False, True):
        run = as_without(box, """
nop = stock("nop", library=%r)
cudrv.launch(nop, (1,), (1,))
cudrv.call("cuModuleUnload", cudrv.module(cudrv.image("nop")))
cudrv.launch(nop, (1,), (1,))
cudrv.synchronize()
""" % library)
        looks(box, run, 0)


def rule__code_at_the_old_handle_of_stock_code_is_not_stock(box):
    as_without(box, """
image = ctypes.c_char.in_dll(ctypes.CDLL(os.environ["STOCK"]), "stock_image")
for n in range(2000):       # until the simulated GPU reuses a handle
    owner = ctypes.c_void_p()
    cudrv.call("cuModuleLoadData", ref(owner), ref(image))
    cudrv.call("cuModuleUnload", owner)
stray()
cudrv.synchronize()
print("waited")
""")


def rule__without_dumps_there_is_no_look(box):
    program = box.script(START + 'cudrv.launch(cudrv.kernel("nop"), (1,), (1,))\ncudrv.synchronize()\n')
    for options, env in ((("--no-core-dump",), {}), ((), {"CUDA_LAUNCH_BLOCKING": "1"})):
        looks(box, under(box, program, *options, **env), 0)


def rule__kernels_in_graphs_are_looked_after(box):
    text = """
stream, func, out = cudrv.stream(), %s, ctypes.c_void_p()
cudrv.synchronize()
cudrv.begin_capture(stream)
cudrv.launch(func, (1,), (1,), *%s, stream=stream)
graph = cudrv.end_capture(stream)
cudrv.call("cuGraphInstantiateWithFlags", ref(out), graph, u64(0))
cudrv.synchronize()
for n in range(3):
    cudrv.call("cuGraphLaunch", out, stream)
    cudrv.synchronize(stream)
    print("waited", flush=True)
"""
    run = as_without(box, text % ('cudrv.kernel("oob_store")', "(p(data), l(1 << 40))"))
    same((run.status, run.out), (1, ""), "a stray store in a graph")
    run = as_without(box, text % ('stock("nop")', "()"))
    looks(box, run, 0)


BUSY = """
nop, spin, side = cudrv.kernel("nop"), stock("spin"), cudrv.stream()
began = time.monotonic()
for n in range(300):
    cudrv.launch(spin, (1,), (1,), i(5), stream=side)
    cudrv.launch(spin, (1,), (1,), i(5), stream=side)
    cudrv.launch(nop, (1,), (1,))
    cudrv.synchronize(ctypes.c_void_p(1))
    cudrv.synchronize(side)
open(sys.argv[0] + ".seconds", "w").write(str(time.monotonic() - began))
"""


def rule__false_alarms_beside_a_busy_stream_are_few(box):
    """Three at once, then one in ten seconds: 1 percent of the time."""
    run = as_without(box, BUSY, gpu="sim:tiny,full_gpu")
    part, = box.parts(run)
    with open(os.path.join(box.scratch, "program.py.seconds"), encoding="ascii") as stream:
        seconds = float(stream.read())
    assert 1 <= part["n_false_looks"] <= 4 + seconds / 10, (part["n_false_looks"], seconds)
    same(box.verdict(run)["cause"], "none", "cause")


def rule__a_look_does_not_wait_for_a_kernel_that_waits_for_the_program(box):
    """A kernel that fills the GPU until the program, which waits for something else, tells it to end."""
    as_without(box, """
side, other, host = cudrv.stream(), cudrv.stream(), ctypes.c_void_p()
nop, hang = cudrv.kernel("nop"), cudrv.kernel("hang")
cudrv.call("cuMemAllocHost_v2", ref(host), ctypes.c_size_t(4))
flag = ctypes.c_int.from_address(host.value)
flag.value = 0
cudrv.launch(nop, (1,), (1,), stream=other)
cudrv.launch(hang, (1,), (1,), p(host.value), stream=side)
time.sleep(0.1)
cudrv.synchronize(other)
flag.value = 1
cudrv.synchronize()
print("ended")
""", gpu="sim:tiny,full_gpu")


CAPTURE = """
nop, hang, stream, ready, host = cudrv.kernel("nop"), stock("hang"), cudrv.stream(), threading.Event(), ctypes.c_void_p()
cudrv.call("cuMemAllocHost_v2", ref(host), ctypes.c_size_t(4))
flag = ctypes.c_int.from_address(host.value)
flag.value = 0
def beside():
    cudrv.call("cuCtxSetCurrent", context)
    mine, side = cudrv.stream(), cudrv.stream()
    cudrv.launch(nop, (1,), (1,), stream=mine)
    while cudrv.cuda.cuStreamQuery(mine):
        pass
    cudrv.launch(hang, (1,), (1,), p(host.value), stream=side)
    time.sleep(0.05)
    ready.set()
    cudrv.synchronize(mine)     # the look behind it is slow
    flag.value = 1
thread = threading.Thread(target=beside)
thread.start()
ready.wait()
time.sleep(0.05)
cudrv.begin_capture(stream, cudrv.GLOBAL)
cudrv.launch(nop, (1,), (1,), stream=stream)
time.sleep(0.05)
cudrv.call("cuGraphDestroy", cudrv.end_capture(stream))
thread.join()
print("captured")
"""


def rule__a_look_does_not_break_a_capture_in_another_thread(box):
    for again in range(20):     # the look is made only if it begins before the capture does
        run = as_without(box, CAPTURE, gpu="sim:tiny,full_gpu")
        same((run.status, run.out), (0, "captured\n"), "status and output")
        if box.parts(run)[0]["n_false_looks"]:
            return
    raise AssertionError("in 20 runs no look was made")


def rule__there_is_no_look_during_a_capture(box):
    """Not even in a mode that would allow it: what the look does must not get into the graph."""
    run = as_without(box, """
nop, stream, other = cudrv.kernel("nop"), cudrv.stream(), cudrv.stream()
cudrv.begin_capture(stream, cudrv.RELAXED)
cudrv.launch(nop, (1,), (1,), stream=other)
cudrv.synchronize(other)
cudrv.end_capture(stream)
print("captured")
""")
    looks(box, run, 0)


COME_AND_GO = """
def work():
    cudrv.launch(cudrv.kernel("nop"), (1,), (1,))
    cudrv.synchronize()
def end(call, again):
    for n in range(again):
        work()
        if call == "cuCtxDestroy_v2":
            other = ctypes.c_void_p()
            cudrv.call("cuCtxCreate_v2", ref(other), 0, 0)
            work()
            cudrv.call(call, other)
        else:
            cudrv.call(call, 0)
            cudrv.init()
end(%r, %d)
data = cudrv.alloc(4096)
"""


def rule__looks_follow_contexts_that_come_and_go(box):
    """More of them than there is room for at a time; what belonged to one that ended is never used again."""
    for call, again in (("cuCtxDestroy_v2", 40), ("cuDevicePrimaryCtxReset_v2", 5), ("cuDevicePrimaryCtxRelease_v2", 5),
                        ("cuDevicePrimaryCtxReset", 3)):
        run = as_without(box, COME_AND_GO % (call, again))
        part, = box.parts(run)
        same((run.status, part["n_failures"], part["lost_looks"]), (0, 0, 0), "status and failures with %s" % call)
        looks(box, run, again * (2 if call == "cuCtxDestroy_v2" else 1))
    run = as_without(box, COME_AND_GO % ("cuDevicePrimaryCtxReset_v2", 1) + "stray()\ncudrv.synchronize()\nprint('waited')\n")
    same(run.status, 1, "a stray store after a reset")


def rule__a_look_that_cannot_be_made_changes_nothing(box):
    text = """
nop = cudrv.kernel("nop")
for n in range(5):
    cudrv.launch(nop, (1,), (1,))
    cudrv.synchronize()
print("ended")
"""
    for plan in ("fail=cuStreamCreateWithPriority:1:2", "fail=cuMemAlloc:2:2", "fail=cuMemsetD32Async:1:400"):
        run = as_without(box, text, gpu="sim:tiny," + plan)
        same((run.status, run.out, box.verdict(run)["cause"]), (0, "ended\n", "none"), plan)


def rule__a_look_is_not_in_the_figures(box):
    """Neither as the program's memory nor as its calls."""
    numbers = []
    for line in ('nop = stock("nop")', 'nop = cudrv.kernel("nop")'):
        run = as_without(box, line + "\ncudrv.launch(nop, (1,), (1,))\ncudrv.synchronize()\n")
        part, = box.parts(run)
        numbers.append([part[key] for key in ("n_allocs", "live_device_bytes", "pinned_peak_bytes", "n_failures")])
    same(numbers[1], numbers[0], "allocations, bytes and failures")


def rule__a_thread_that_waits_while_another_looks_is_told_too(box):
    run = as_without(box, """
func, codes, ready, go = cudrv.kernel("oob_store"), [], threading.Semaphore(0), threading.Event()
def wait(n):
    cudrv.call("cuCtxSetCurrent", context)
    ready.release()
    go.wait()
    time.sleep(n * 0.012)       # some of them after the GPU runs again
    try:
        cudrv.synchronize()
        codes.append(0)
    except cudrv.CudaError as error:
        codes.append(error.code)
threads = [threading.Thread(target=wait, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[ready.acquire() for t in threads]
stray(func)
go.set()
[t.join() for t in threads]
print(codes)
""")
    same(run.out, "%r\n" % ([700] * 8), "what the threads saw")


ENDS = """
import time
func = stock("oob_store")
cudrv.synchronize()
%s
time.sleep(%g)
sys.exit(0)
"""


def rule__a_stray_store_is_found_whenever_the_program_ends(box):
    """Before, while and after the GPU is stopped, and shortly before the error comes."""
    for seconds in (0, 0.03, 0.06, 0.085, 0.095, 0.11):
        for wait in ("stray(func)", "stray(func); cudrv.synchronize()"):
            run = under(box, box.script(START + ENDS % (wait, seconds)))
            same((run.status, box.verdict(run)["cause"]), (1, "illegal-access-out-of-bounds"), "%s, then %g s" % (wait, seconds))


def rule__a_stray_store_in_a_second_context_is_found_at_the_end(box):
    """The last look sees the current context alone, so there is none: the process waits."""
    run = under(box, box.script(START + """
other = ctypes.c_void_p()
cudrv.call("cuCtxCreate_v2", ref(other), 0, 0)
data = cudrv.alloc(4096)
stray(stock("oob_store"))
cudrv.call("cuCtxSetCurrent", context)
"""))
    same((run.status, box.verdict(run)["cause"]), (1, "illegal-access-out-of-bounds"), "status and cause")


def ends_at_once(box, text):
    """From its last statement to its end a program took less than it takes to wait for an error: at least once, because on a
    loaded machine anything takes long."""
    found = []
    while not found or found[-1] >= 0.15:
        assert len(found) < 40, "ended %.3f s later at best: %s" % (min(found), text)
        run = under(box, box.script(text + "\nprint(time.monotonic_ns(), flush=True)\n"))
        same(run.status, 0, run.err[-400:])
        found.append((box.parts(run)[0]["exit_mono_ns"] - int(run.out)) / 1e9)


def rule__a_healthy_program_does_not_wait_for_an_error_when_it_ends(box):
    """The GPU ran what the recorder gave it to do, twice: no error can come. Waiting for one takes 0.3 s."""
    for kernel in ('stock("nop")', 'stock("nop", library=True)', 'cudrv.kernel("nop")'):
        for wait in ("", "cudrv.synchronize()"):
            ends_at_once(box, START + "cudrv.launch(%s, (1,), (1,))\n%s" % (kernel, wait))


def rule__a_program_that_only_asks_about_devices_ends_at_once(box):
    """Without a context nothing can have run."""
    ends_at_once(box, """
import ctypes, time, cudrv
count = ctypes.c_int()
cudrv.call("cuInit", 0)
cudrv.call("cuDeviceGetCount", ctypes.byref(count))
""")


def rule__a_kernel_that_never_ends_does_not_keep_the_process(box):
    """Neither in a program that has looked before nor in one that has not."""
    for before in ("", 'cudrv.launch(cudrv.kernel("nop"), (1,), (1,)); cudrv.synchronize()'):
        for gpu in ("sim:tiny,full_gpu", LATE):
            run = under(box, box.script(START + """
host = ctypes.c_void_p()
cudrv.call("cuMemAllocHost_v2", ref(host), ctypes.c_size_t(4))
ctypes.c_int.from_address(host.value).value = 0
%s
cudrv.launch(stock("hang"), (1,), (1,), p(host.value), stream=cudrv.stream())
""" % before), gpu=gpu)
            same((run.status, box.verdict(run)["cause"]), (0, "none"), "status and cause")


def rule__a_loop_of_calls_that_wait_seldom_looks_for_a_dump(box):
    """A system call each time would be most of what such a call costs: five in a millisecond are enough."""
    run = under(box, box.script(START + """
nop, event, looks = stock("nop"), ctypes.c_void_p(), ctypes.CDLL(None).dump_looks
cudrv.call("cuEventCreate", ref(event), 2)
def loop(call, *args):
    before, began = looks(), time.monotonic()
    for n in range(3000):
        cudrv.call(call, *args)
    return looks() - before, 5000 * (time.monotonic() - began)
cudrv.launch(nop, (1,), (1,))
cudrv.synchronize()
for call in (("cuStreamSynchronize", None), ("cuEventQuery", event), ("cuCtxSynchronize",)):
    count, limit = loop(*call)
    print(call[0], "ok" if 0 < count <= limit + 10 else (count, limit))
"""), LD_PRELOAD=box.library("count_access", "-ldl"))
    same(run.out, "cuStreamSynchronize ok\ncuEventQuery ok\ncuCtxSynchronize ok\n", run.err[-400:])
