# SPDX-License-Identifier: Apache-2.0
"""Guard mode: what leaves an allocation faults, what is freed is unmapped after the work before it, what is healthy stays as it is."""
import os
import re

from toolbox import same

HERE = os.path.dirname(os.path.abspath(__file__))
START = """
import ctypes, os, sys, time, cudrv
p, l, i, f, ref = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int, ctypes.c_float, ctypes.byref
cudrv.init()
store, load, fill, copy, spin = (cudrv.kernel(name) for name in ("oob_store", "oob_load", "fill", "copy", "spin"))
def poke(at, index, threads=1, stream=None):
    cudrv.launch(store, (1,), (threads,), p(at), l(index), stream=stream)
def queued(size, stream):
    out = p()
    cudrv.call("cuMemAllocAsync", ref(out), ctypes.c_size_t(size), stream)
    return out.value
"""


def line_of(text, mark):
    """The line that ends with this mark."""
    return 1 + next(n for n, line in enumerate(text.split("\n")) if line.endswith("# " + mark))


def guarded(box, text, guard="--guard", gpu="sim:tiny", **env):
    run = box.under(box.script(START + text), guard, gpu=gpu, **env)
    return run, box.verdict(run)


def found(box, text, cause, guard="--guard", certainty="certain", **more):
    """The verdict on a program that ends badly or well, at the line marked `bad`."""
    run, verdict = guarded(box, text, guard, **more)
    same((verdict["cause"], verdict["certainty"]), (cause, certainty), "verdict (%s)" % run.err[-2000:])
    if "# bad" in text:
        lines = [frame["line"] for frame in verdict["where"]["stack"] if frame["file"].endswith("program.py")]
        assert line_of(START + text, "bad") in lines, (lines, run.err[-2000:])
    return run, verdict


def says(verdict, words):
    told = re.sub(r"/\S*/program\.py", "program.py", "; ".join(verdict["why"]))
    assert words in told, "%r is not in %r" % (words, told)


def quiet(box, text, guard="--guard", **more):
    """A healthy program: the same output with and without, nothing found."""
    plain = box.plain_sim(box.script(START + text), PYTHONPATH=os.path.join(HERE, "site-packages"))
    run, verdict = guarded(box, text, guard, **more)
    same((run.status, run.out), (plain.status, plain.out), "status and output (%s)" % run.err[-2000:])
    same((plain.status, verdict["cause"], verdict["notes"]), (0, "none", []), "verdict")
    return run, verdict


def rule__one_element_past_the_end_faults(box):
    text = """
a = cudrv.alloc(4000)
b = cudrv.alloc(8000)
poke(a, 999)
cudrv.synchronize()
poke(a, 1000) # bad
cudrv.synchronize()
"""
    run, verdict = found(box, text, "illegal-access-out-of-bounds")
    says(verdict, "right behind a block of 3.9 KiB; the kernel's code computes")
    says(verdict, "it was allocated at program.py:%d" % (line_of(START + text, "bad") - 4))
    says(verdict, "allocated at program.py:%d" % (line_of(START + text, "bad") - 3))
    same((run.status, verdict["guard"]["guarded"]), (1, 2), "status, guarded")


def rule__the_element_is_counted_from_the_kernels_pointer(box):
    _, verdict = found(box, "a = cudrv.alloc(4000)\npoke(a + 400, 903, 2) # bad\ncudrv.synchronize()", "illegal-access-out-of-bounds")
    same(verdict["fault"]["element"], {"index": 903, "of": 900, "bytes": 4}, "element")
    says(verdict, "from the pointer to this block: element 903 of 900 (0 to 899)")
    same(verdict["fault"].get("view"), None, "what PyTorch gave the kernel")


def rule__a_read_past_the_end_faults(box):
    found(box, """
a, b = cudrv.alloc(4096), cudrv.alloc(4096)
cudrv.launch(load, (1,), (32,), p(b), p(a), l(1000)) # bad
cudrv.synchronize()
""", "illegal-access-out-of-bounds")


def rule__before_the_start_faults_with_before(box):
    text = """
a = cudrv.alloc(4000)
poke(a, -1) # bad
cudrv.synchronize()
"""
    _, verdict = found(box, text, "illegal-access-out-of-bounds", "--guard=before")
    says(verdict, "4 bytes before")
    _, verdict = guarded(box, text)
    same(verdict["cause"], "none", "without `before` it is inside the page")


def rule__with_before_a_write_behind_is_found_late(box):
    found(box, """
a = cudrv.alloc(4000)
poke(a, 1001) # bad
cudrv.synchronize()
cudrv.free(a)
""", "overrun-behind-allocation", "--guard=before")


def rule__stream_ordered_memory_is_guarded(box):
    found(box, """
side = cudrv.stream()
a = queued(4000, side)
poke(a, 1000, stream=side) # bad
cudrv.synchronize()
""", "illegal-access-out-of-bounds")


def rule__a_use_after_free_faults_at_once(box):
    """Although the kernel before it may still have been running, and the same kernel ran before the free."""
    text = """
a = cudrv.alloc(4000)
poke(a, 5)
cudrv.free(a) # let go
b = cudrv.alloc(4000)
poke(a, 5) # bad
cudrv.synchronize()
"""
    _, verdict = found(box, text, "illegal-access-use-after-free")
    says(verdict, "freed at program.py:%d" % line_of(START + text, "let go"))


def rule__a_use_behind_a_stream_ordered_free_faults_at_once(box):
    text = """
side = cudrv.stream()
a = queued(4000, side)
cudrv.launch(spin, (1,), (1,), i(50), stream=side)
cudrv.call("cuMemFreeAsync", p(a), side) # let go
poke(a, 5, stream=side) # bad
cudrv.synchronize()
"""
    _, verdict = found(box, text, "illegal-access-use-after-free")
    says(verdict, "freed at program.py:%d" % line_of(START + text, "let go"))


def rule__freeing_waits_for_no_work_and_overtakes_none(box):
    """Slow kernels on what is freed behind them: the program goes on, and no kernel faults."""
    run, verdict = quiet(box, """
side = cudrv.stream()
def work():
    for n in range(200):
        a = queued(4096, side)
        poke(a, 5, stream=side)
        cudrv.call("cuMemFreeAsync", p(a), side)
def waits(for_ms):
    slow = p()
    cudrv.call("cuEventCreate", ref(slow), 0)
    cudrv.launch(spin, (1,), (1,), i(for_ms), stream=side)
    cudrv.call("cuEventRecord", slow, side)
    work()
    ended = cudrv.cuda.cuEventQuery(slow) == 0      # the kernel before it, when all was queued
    cudrv.synchronize()
    return ended
work()
cudrv.synchronize()
print("waits" if all(waits(ms) for ms in (1000, 4000, 16000)) else "goes on")    # longer: this machine may be slow
""", gpu="sim:tiny,memory=8G")
    same(run.out, "goes on\n", "with --guard")
    assert verdict["guard"]["guarded"] >= 400, verdict["guard"]


UNREAD = """
NOT_READY = 600
side, other = cudrv.stream(), cudrv.stream()
def let_go():
    a = queued(4096, side)
    poke(a, 5, stream=side)
    cudrv.call("cuMemFreeAsync", p(a), side)
    return a
def passes(for_ms):
    cudrv.launch(spin, (1,), (1,), i(for_ms), stream=side)
    cudrv.launch(fill, (1,), (32,), p(let_go()), f(1), i(0), stream=other)     # of no elements: the pointer is not followed
    passed = cudrv.cuda.cuStreamQuery(side) == NOT_READY      # what was queued before the free still runs
    cudrv.synchronize()
    for n in range(70):
        let_go()
    cudrv.synchronize()
    return passed
first = passes(700)
print("waited" if not first and any(passes(ms) for ms in (700, 1500, 3000, 6000)) else "no", flush=True)    # longer: this machine may be slow
"""


def rule__a_pointer_that_is_not_followed_is_waited_for_once(box):
    """Parameters with room for more tensors than there are hold what the stack held before."""
    run, verdict = guarded(box, UNREAD, gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"], verdict["notes"]), (0, "waited\n", "none", []), run.err[-2000:])


def rule__it_is_waited_for_again_with_another_grid(box):
    text = UNREAD + """
cudrv.launch(spin, (1,), (1,), i(300), stream=side)
cudrv.launch(fill, (2,), (32,), p(let_go()), f(1), i(64), stream=other) # bad
cudrv.synchronize()
"""
    found(box, text, "illegal-access-use-after-free", gpu="sim:tiny,memory=8G")


def rule__a_captured_launch_does_not_tell_what_a_kernel_follows(box):
    """It has not been executed."""
    text = UNREAD.split("def passes")[0] + """
a = cudrv.alloc(4096)
cudrv.launch(fill, (1,), (32,), p(a), f(1), i(32))
cudrv.free(a)
let_go()
cudrv.begin_capture(other)
cudrv.launch(fill, (1,), (32,), p(a), f(1), i(32), stream=other)
graph = cudrv.end_capture(other)
for n in range(70):
    let_go()
cudrv.synchronize()
time.sleep(0.3)
cudrv.launch(spin, (1,), (1,), i(500), stream=side)
cudrv.launch(fill, (1,), (32,), p(let_go()), f(1), i(32), stream=other) # bad
cudrv.synchronize()
"""
    found(box, text, "illegal-access-use-after-free", gpu="sim:tiny,memory=8G")


def rule__a_capture_may_begin_while_another_thread_unmaps(box):
    """The other thread was waiting for a kernel by then. To unmap is a call that ends a capture of the usual kind, whoever makes it."""
    run, verdict = guarded(box, """
import threading
context = p()
cudrv.call("cuCtxGetCurrent", ref(context))
side, other, third = cudrv.stream(), cudrv.stream(), cudrv.stream()
keep = cudrv.alloc(4096)
cudrv.launch(fill, (1,), (32,), p(keep), f(1), i(0), stream=other)
def waits():
    cudrv.call("cuCtxSetCurrent", context)
    a = queued(4090, side)
    cudrv.launch(spin, (1,), (1,), i(1000), stream=side)
    cudrv.call("cuMemFreeAsync", p(a), side)
    cudrv.launch(fill, (1,), (32,), p(a), f(1), i(0), stream=other)    # waits for the free
thread = threading.Thread(target=waits)
thread.start()
time.sleep(0.3)
cudrv.begin_capture(third)
poke(keep, 1, stream=third)
thread.join()
cudrv.run_graph(cudrv.end_capture(third), third)
cudrv.synchronize()
print("ended")
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"]), (0, "ended\n", "none"), run.err[-2000:])


HOST_WAITS = """
import threading
side, other = cudrv.stream(), cudrv.stream()
keep = cudrv.alloc(4096)
cudrv.launch(fill, (1,), (32,), p(keep), f(1), i(0), stream=other)
cudrv.synchronize()
go, waits = threading.Event(), ctypes.CFUNCTYPE(None, ctypes.c_void_p)
wait = waits(lambda unused: go.wait(300) and None)
cudrv.call("cuLaunchHostFunc", side, wait, None)
a = queued(4096, side)
cudrv.call("cuMemFreeAsync", p(a), side)
"""


def rule__a_stream_that_waits_for_the_program_stops_no_launch(box):
    """The pointer is not followed. To wait for it to be unmapped without an end would be a hang."""
    run, verdict = guarded(box, HOST_WAITS + """
cudrv.launch(fill, (1,), (32,), p(a), f(1), i(0), stream=other)
began = time.monotonic()
cudrv.launch(fill, (1,), (32,), p(a), f(1), i(0), stream=other)
print("at once" if time.monotonic() - began < 5 else "waited again")
go.set()
cudrv.synchronize()
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"]), (0, "at once\n", "none"), run.err[-2000:])


def rule__a_stream_that_is_slow_holds_up_no_other(box):
    """What is freed on other streams is unmapped, and its memory used again."""
    run, verdict = guarded(box, HOST_WAITS + """
for n in range(500):
    b = queued(64 << 20, other)
    poke(b, 5, stream=other)
    cudrv.call("cuMemFreeAsync", p(b), other)
go.set()
cudrv.synchronize()
""", gpu="sim:tiny,memory=8G")
    same((run.status, verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (0, 502, {}), run.err[-2000:])


def rule__a_program_ends_although_a_stream_waits_for_it(box):
    run, verdict = guarded(box, HOST_WAITS + """
odd = cudrv.alloc(4090)     # to be looked at when all work has ended
print("ends", flush=True)
sys.exit(3)
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out), (3, "ends\n"), run.err[-2000:])


def rule__a_pointer_in_memory_is_recognized_as_one_in_a_parameter(box):
    """Of the late kind too: the thread has ended, and no parameter leads to the address."""
    text = """
a, table, other = cudrv.alloc(4000), cudrv.alloc(8), cudrv.alloc(4000)
cudrv.call("cuMemcpyHtoD_v2", p(table), ref(p(a)), ctypes.c_size_t(8))
cudrv.launch(cudrv.kernel("through"), (1,), (32,), p(table))
cudrv.free(a) # let go
cudrv.launch(cudrv.kernel("through"), (1,), (32,), p(table)) # bad
cudrv.synchronize()
"""
    _, verdict = found(box, text, "illegal-access-use-after-free")
    says(verdict, "freed at program.py:%d" % line_of(START + text, "let go"))
    says(verdict, "it was allocated at program.py:%d" % (line_of(START + text, "let go") - 3))


SIDE = """
main, side = cudrv.stream(), cudrv.stream()
cudrv.launch(fill, (1,), (32,), p(queued(4096, main)), f(1), i(32), stream=main)
def event_of(stream):
    event = p()
    cudrv.call("cuEventCreate", ref(event), 2)
    cudrv.call("cuEventRecord", event, stream)
    return event
x, y = queued(4096, main), queued(4096, side)
cudrv.synchronize()
cudrv.launch(spin, (1,), (1,), i(1500), stream=side)
"""
FREE = 'cudrv.call("cuMemFreeAsync", p(%s), %s)\n'


def rule__a_stream_that_uses_it_unknown_to_the_free_is_not_waited_for(box):
    """Also not because something else was freed there in the meantime."""
    found(box, SIDE + "poke(x, 5, stream=side) # bad\n" + FREE % ("y", "side") + FREE % ("x", "main") + "cudrv.synchronize()\n",
          "illegal-access-use-after-free", gpu="sim:tiny,memory=8G")


def rule__a_wait_that_comes_after_the_memory_was_given_out_is_too_late(box):
    found(box, SIDE + "poke(x, 5, stream=side) # bad\n" + FREE % ("x", "main") + """
z = queued(4096, main)
cudrv.call("cuStreamWaitEvent", main, event_of(side), 0)
cudrv.synchronize()
""", "illegal-access-use-after-free", gpu="sim:tiny,memory=8G")


def rule__a_free_is_in_the_order_of_its_stream_alone(box):
    """Not of the one it was allocated for."""
    found(box, SIDE + "poke(y, 5, stream=side) # bad\n" + FREE % ("y", "main") + "cudrv.synchronize()\n",
          "illegal-access-use-after-free", gpu="sim:tiny,memory=8G")


def rule__a_free_that_is_captured_comes_when_the_graph_is_run(box):
    """It is a node behind the kernels that use the memory."""
    run, verdict = guarded(box, """
side = cudrv.stream()
a = queued(4096, side)
cudrv.synchronize()
cudrv.begin_capture(side)
poke(a, 5, stream=side)
cudrv.call("cuMemFreeAsync", p(a), side)
graph = cudrv.end_capture(side)
for n in range(100):
    cudrv.call("cuMemFreeAsync", p(queued(4096, side)), side)
cudrv.free(cudrv.alloc(4096))
cudrv.run_graph(graph, side)
cudrv.synchronize()
print("ended")
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"]), (0, "ended\n", "none"), run.err[-2000:])


def rule__streams_that_are_waited_for_keep_what_is_freed(box):
    """By the stream of the free, or by the program; cuMemFree waits for all of them."""
    run, verdict = guarded(box, SIDE + "poke(x, 5, stream=side)\n" + """
cudrv.call("cuStreamWaitEvent", main, event_of(side), 0)
""" + FREE % ("x", "main") + """
w = queued(4096, main)
cudrv.launch(spin, (1,), (1,), i(300), stream=side)
poke(w, 5, stream=side)
cudrv.call("cuEventSynchronize", event_of(side))
""" + FREE % ("w", "main") + """
v = cudrv.alloc(4096)
cudrv.launch(spin, (1,), (1,), i(300), stream=side)
poke(v, 5, stream=side)
cudrv.free(v)
for n in range(100):
    cudrv.call("cuMemFreeAsync", p(queued(4096, main)), main)
cudrv.synchronize()
print("ended")
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"]), (0, "ended\n", "none"), run.err[-2000:])


def rule__two_threads_that_wait_both_wait(box):
    """The first one for a slow kernel, longer than a lock is waited for."""
    found(box, """
import threading
context = p()
cudrv.call("cuCtxGetCurrent", ref(context))
side, other, third = cudrv.stream(), cudrv.stream(), cudrv.stream()
keep = cudrv.alloc(4096)
cudrv.launch(fill, (1,), (32,), p(keep), f(1), i(32), stream=other)
cudrv.synchronize()
def waits():
    cudrv.call("cuCtxSetCurrent", context)
    a = queued(4096, side)
    cudrv.launch(spin, (1,), (1,), i(6000), stream=side)
    cudrv.call("cuMemFreeAsync", p(a), side)
    cudrv.launch(fill, (2,), (32,), p(a), f(1), i(0), stream=other)
thread = threading.Thread(target=waits)
thread.start()
time.sleep(0.3)
b = queued(4096, third)
cudrv.call("cuMemFreeAsync", p(b), third)
cudrv.launch(fill, (1,), (32,), p(b), f(1), i(32), stream=other) # bad
thread.join()
cudrv.synchronize()
""", "illegal-access-use-after-free", gpu="sim:tiny,memory=8G")


def rule__the_work_of_a_destroyed_stream_is_waited_for(box):
    """It goes on after the stream is gone, and so does what it uses; also what is freed only then."""
    run, verdict = guarded(box, """
main = cudrv.stream()
for n in range(5):
    side = cudrv.stream()
    cudrv.launch(spin, (1,), (1,), i(300), stream=side)
    a, b = queued(4090, side), queued(4090, side)
    poke(a, 5, stream=side)
    poke(b, 5, stream=side)
    cudrv.call("cuMemFreeAsync", p(a), side)
    cudrv.call("cuStreamDestroy_v2", side)
    cudrv.call("cuMemFreeAsync", p(b), None)
    for k in range(70):
        cudrv.call("cuMemFreeAsync", p(queued(4096, main)), main)
    time.sleep(0.05)
cudrv.synchronize()
print("ended")
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"]), (0, "ended\n", "none"), run.err[-2000:])


def rule__a_capture_that_goes_with_its_stream_has_ended(box):
    """During a capture nothing is unmapped."""
    run, verdict = guarded(box, """
keep, side = cudrv.alloc(4096), cudrv.stream()
cudrv.begin_capture(side)
poke(keep, 3, stream=side)
cudrv.call("cuStreamDestroy_v2", side)
for n in range(200):
    cudrv.free(cudrv.alloc(8 << 20))
""")
    same((run.status, verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (0, 201, {}), run.err[-2000:])


def rule__a_reset_takes_all_memory_with_it(box):
    run, verdict = guarded(box, """
for n in range(3):
    cudrv.init()
    store = cudrv.kernel("oob_store")
    a, b = cudrv.alloc(5 << 30), cudrv.alloc(4090)
    poke(a, 5)
    poke(b, 1000)
    cudrv.synchronize()
    for k in range(40):
        cudrv.free(cudrv.alloc(4096))
    cudrv.call("cuDevicePrimaryCtxReset_v2", 0)
print("ended")
""", gpu="sim:tiny,memory=8G")
    same((run.status, run.out, verdict["cause"], verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]),
         (0, "ended\n", "none", 126, {}), run.err[-2000:])


def rule__a_write_in_the_slack_is_found_when_it_is_freed(box):
    text = """
a = cudrv.alloc(4004) # made
poke(a, 1002) # bad
cudrv.synchronize()
cudrv.free(a) # freed
print("ended")
"""
    run, verdict = found(box, text, "overrun-behind-allocation")
    same((run.status, run.out), (0, "ended\n"), "the program itself")
    says(verdict, "4 bytes were written, the first one 4 bytes past the end of an allocation of 4,004 bytes")
    says(verdict, "allocated at program.py:%d" % line_of(START + text, "made"))
    says(verdict, "at program.py:%d" % line_of(START + text, "freed"))


def rule__a_write_in_the_slack_is_found_at_the_end(box):
    found(box, """
a = cudrv.alloc(4004)
poke(a, 1002) # bad
""", "overrun-behind-allocation")


def rule__several_lines_with_a_pointer_are_all_named(box):
    _, verdict = found(box, """
a = cudrv.alloc(4004)
poke(a, 1)
cudrv.launch(fill, (1,), (32,), p(a), f(1), i(32))
cudrv.launch(store, (1,), (1,), p(a), l(1002))
cudrv.synchronize()
cudrv.free(a)
""", "overrun-behind-allocation", certainty="likely")
    says(verdict, "3 lines launched kernels with a pointer to it")


def rule__with_align_256_addresses_are_as_without(box):
    quiet(box, """
for size in (1, 100, 4000, 4096, 5 << 20):
    print(cudrv.alloc(size) % 256)
""", "--guard=align=256")
    found(box, """
a = cudrv.alloc(4000)
poke(a, 1020) # bad
cudrv.synchronize()
cudrv.free(a)
""", "overrun-behind-allocation", "--guard=align=256")


def rule__questions_about_an_address_are_about_the_allocation(box):
    quiet(box, """
a, base, size, kind, at, n = cudrv.alloc(4000), p(), p(), i(), p(), p()
cudrv.call("cuMemGetAddressRange_v2", ref(base), ref(size), p(a + 400))
print(base.value == a, size.value)
cudrv.call("cuPointerGetAttribute", ref(at), 11, p(a + 8))
cudrv.call("cuPointerGetAttribute", ref(n), 12, p(a + 8))
print(at.value == a, n.value)
what, where = (ctypes.c_int * 2)(11, 12), (ctypes.c_void_p * 2)(ctypes.addressof(at), ctypes.addressof(n))
cudrv.call("cuPointerGetAttributes", 2, what, where, p(a))
print(at.value == a, n.value)
""")


def rule__memory_that_is_shared_ends_the_program_with_2(box):
    text = """
a, handle = cudrv.alloc(4000), (ctypes.c_char * 64)()
cudrv.call("cuIpcGetMemHandle", handle, p(a))
print("shared")
"""
    run = box.under(box.script(START + text), "--guard")
    same((run.status, run.out), (2, ""), "status and output")
    assert "--guard: the program shares GPU memory with another process" in run.err, run.err
    quiet(box, text, "--guard=only=elsewhere.py")


def rule__only_guards_the_lines_that_were_asked_for(box):
    text = """
a = cudrv.alloc(4000) # first
b = cudrv.alloc(4000) # second
print("ended")
"""
    line = line_of(START + text, "second")
    for only, number in (("program.py:%d" % line, 1), ("program.py:%d-%d" % (line - 1, line), 2), ("program.py", 2),
                         ("other.py", 0), ("program.py:1-2", 0)):
        _, verdict = quiet(box, text, "--guard=only=" + only)
        same((verdict["guard"]["guarded"], verdict["guard"]["not_guarded"].get("only", 0)), (number, 2 - number), only)


def rule__a_sample_guards_every_nth(box):
    _, verdict = quiet(box, """
for n in range(24):
    cudrv.alloc(4000)
""", "--guard=sample=1/8")
    same((verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (3, {"sample": 21}), "guarded")


def rule__what_small_ones_lose_is_bounded(box):
    """A tenth of the card. What is large loses little."""
    run, verdict = guarded(box, """
small = [cudrv.alloc(4000) for n in range(300)]
large = cudrv.alloc(300 << 20)
poke(large, (75 << 20) - 1)
for one in small[:200]:
    cudrv.free(one)
again = [cudrv.alloc(4000) for n in range(10)]
cudrv.synchronize()
print("ended")
""", gpu="sim:tiny,memory=1G")
    same((run.status, run.out, verdict["cause"]), (0, "ended\n", "none"), run.err[-2000:])
    same(verdict["guard"]["guarded"], 51 + 1 + 10, "guarded")
    same(verdict["guard"]["not_guarded"], {"memory": 300 - 51}, "not guarded")


def rule__figures_of_the_drivers_pools_count_what_is_guarded(box):
    quiet(box, """
pool, used, most = p(), ctypes.c_uint64(), ctypes.c_uint64()
cudrv.call("cuDeviceGetDefaultMemPool", ref(pool), 0)
def figures():
    cudrv.call("cuMemPoolGetAttribute", pool, 7, ref(used))
    cudrv.call("cuMemPoolGetAttribute", pool, 8, ref(most))
    print(used.value, most.value)
side = cudrv.stream()
a, b = queued(4096, side), queued(1 << 20, side)
figures()
cudrv.call("cuMemFreeAsync", p(b), side)
cudrv.synchronize()
figures()
cudrv.call("cuMemPoolSetAttribute", pool, 8, ref(ctypes.c_uint64(0)))
figures()
""", gpu="sim:tiny,memory=1G")


def rule__what_is_freed_makes_room(box):
    run, verdict = guarded(box, """
side = cudrv.stream()
for n in range(100):
    a = queued(8 << 20, side)
    poke(a, 5, stream=side)
    cudrv.call("cuMemFreeAsync", p(a), side)
""")
    same((run.status, verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (0, 100, {}), "guarded (%s)" % run.err)


def rule__what_is_kept_goes_to_those_that_are_not_guarded(box):
    """Memory of freed allocations is kept for the next ones; a call that finds none left must not fail for that."""
    text = """
for n in range(3):
    cudrv.free(cudrv.alloc(3 << 30)) # guarded
out = [cudrv.alloc(6 << 30)]
cudrv.free(out[0])
print("ended")
"""
    line = line_of(START + text, "guarded")
    run, verdict = guarded(box, text, "--guard=only=program.py:%d" % line, gpu="sim:tiny,memory=8G")
    same((run.status, verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (0, 3, {"only": 1}), run.err[-2000:])


def rule__what_is_being_mapped_in_advance_makes_room(box):
    """It is neither among what is kept nor ready yet."""
    run, verdict = guarded(box, """
for n in range(1000):
    cudrv.free(cudrv.alloc(3 << 30))
    cudrv.free(cudrv.alloc(7 << 30))
""", gpu="sim:tiny,memory=8G")
    same((run.status, verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (0, 2000, {}), run.err[-2000:])


def rule__one_that_is_larger_than_what_is_reserved_at_once_is_guarded(box):
    """A quarter of the budget, at most 64 GiB."""
    for gpu, guard, size in (("sim:tiny,memory=8G", "--guard=budget=1G", 300 << 20), ("sim:tiny,memory=140G", "--guard", 70 << 30)):
        run, verdict = guarded(box.fresh(), """
for n in range(5):
    a = cudrv.alloc(%d)
    poke(a, %d)
    cudrv.free(a)
""" % (size, size // 4 - 1), guard, gpu=gpu)
        same((run.status, verdict["guard"]["guarded"], verdict["guard"]["not_guarded"]), (0, 5, {}), run.err[-2000:])


def rule__addresses_are_used_again_only_after_the_budget(box):
    text = """
seen = set()
for n in range(1500):
    a = cudrv.alloc(4000)
    seen.add(a)
    cudrv.free(a)
open(sys.argv[0] + ".seen", "w").write(str(len(seen)))
"""
    for budget, reused in (("16T", False), ("1G", True)):
        _, verdict = quiet(box, text, "--guard=budget=" + budget)
        with open(os.path.join(box.scratch, "program.py.seen"), encoding="ascii") as stream:
            seen = int(stream.read())
        same((seen == 1500, verdict["guard"]["addresses_reused"] > 0), (not reused, reused), budget)


def rule__memory_that_nobody_wrote_is_named(box):
    text = """
a = cudrv.alloc(4096) # made
b = cudrv.alloc(4096)
cudrv.launch(fill, (4,), (256,), p(b), f(1), i(1024))
cudrv.launch(fill, (4,), (256,), p(a), f(1), i(1000))
cudrv.launch(copy, (1,), (32,), p(b), p(a + 3968), i(32))
print(cudrv.read_floats(b, 32)[-1]) # read
"""
    run, verdict = found(box, text, "uninitialized-read", "--guard=values", certainty="possible")
    same((run.status, run.out), (0, "nan\n"), "the program itself")
    says(verdict, "bytes 4,000 to 4,095 of an allocation of 4,096 bytes")
    says(verdict, "allocated at program.py:%d" % line_of(START + text, "made"))
    says(verdict, "read at program.py:%d" % line_of(START + text, "read"))


def rule__one_unwritten_allocation_is_likely(box):
    found(box, """
a, b = cudrv.alloc(4096), cudrv.alloc(128)
cudrv.launch(fill, (4,), (256,), p(a), f(1), i(1000))
cudrv.launch(copy, (1,), (32,), p(b), p(a + 3968), i(32))
cudrv.launch(fill, (1,), (32,), p(b), f(float("nan")), i(32))
cudrv.read_floats(b, 32)
""", "uninitialized-read", "--guard=values", certainty="likely")


def rule__a_queued_copy_is_looked_at_when_it_was_waited_for(box):
    found(box, """
a, host, side = cudrv.alloc(64), (ctypes.c_float * 16)(), cudrv.stream()
cudrv.call("cuMemcpyDtoHAsync_v2", host, p(a), ctypes.c_size_t(64), side)
cudrv.synchronize(side)
""", "uninitialized-read", "--guard=values", certainty="likely")


def rule__nan_of_the_program_itself_is_no_alarm(box):
    quiet(box, """
a = cudrv.alloc(128)
cudrv.launch(fill, (1,), (32,), p(a), f(float("nan")), i(32))
print(cudrv.read_floats(a, 32)[3])
""", "--guard=values")


OWN_NAN = """
n = cudrv.alloc(128)
cudrv.launch(fill, (1,), (32,), p(n), f(float("nan")), i(32))
print(cudrv.read_floats(n, 32)[3])
"""


def rule__memory_that_no_kernel_was_given_is_no_alarm(box):
    """Whatever is in it, the NaN cannot come from there."""
    quiet(box, """
a, b = cudrv.alloc(4096), cudrv.alloc(2 << 20)
cudrv.launch(fill, (4,), (256,), p(a), f(1), i(1024))
side = cudrv.stream()
cudrv.begin_capture(side)
poke(a, 3, stream=side)
graph = cudrv.run_graph(cudrv.end_capture(side), side)
cudrv.synchronize()
host = (ctypes.c_uint64 * 512)(*range(512))
cudrv.call("cuMemcpyHtoD_v2", p(a), host, ctypes.c_size_t(4096))
""" + OWN_NAN, "--guard=values")


def rule__memory_that_was_given_in_any_way_is_named(box):
    """In a structure beyond the parameters that are kept, in a captured graph, by a copy on the GPU, by one that a structure describes."""
    ways = {
        "structure": """
class T(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint64 * 40)]
t, table = T(), cudrv.kernel("table")
t.value[39] = a
cudrv.launch(table, (1,), (32,), p(b), t, i(32))
""",
        "graph": """
side = cudrv.stream()
cudrv.begin_capture(side)
cudrv.launch(copy, (1,), (32,), p(b), p(a), i(32), stream=side)
graph = cudrv.run_graph(cudrv.end_capture(side), side)
cudrv.synchronize()
""",
        "copy": """
cudrv.call("cuMemcpyDtoD_v2", p(b), p(a), ctypes.c_size_t(128))
""",
        "rows": """
copy2 = (ctypes.c_uint64 * 16)(0, 0, 2, 0, a, 0, 128, 0, 0, 2, 0, b, 0, 128, 128, 1)
cudrv.call("cuMemcpy2D_v2", copy2)
""",
    }
    for name, text in ways.items():
        _, verdict = found(box.fresh(), """
a, b = cudrv.alloc(4096), cudrv.alloc(128)
""" + text + "cudrv.launch(fill, (1,), (32,), p(b), f(1), i(32))" + OWN_NAN, "uninitialized-read", "--guard=values", certainty="likely")
        says(verdict, "an allocation of 4,096 bytes")


def rule__memory_that_may_have_been_given_is_possible(box):
    """In a table of pointers; or by a launch whose parameters cannot be known."""
    table = """
a, b = cudrv.alloc(4096), cudrv.alloc(128)
host = (ctypes.c_uint64 * 16)(*([7] * 15 + [a]))
cudrv.call("cuMemcpyHtoD_v2", p(b), host, ctypes.c_size_t(128))
"""
    _, verdict = found(box, table + OWN_NAN, "uninitialized-read", "--guard=values", certainty="possible")
    says(verdict, "its address was in data that was copied to the GPU")
    same(verdict["candidates"][0]["rule"], "unwritten-and-unseen", "rule")


def rule__memory_that_a_library_has_for_itself_is_no_alarm(box):
    """Also when the library's kernels are given it: what is in a workspace is nobody's result."""
    folder = os.path.join(box.scratch, "lib")
    os.makedirs(folder)
    made = box.builder.compile(os.path.join(HERE, "programs", "own_memory.c"), "own_memory.so", ["-shared", "-fPIC"])
    os.link(made, os.path.join(folder, "libcutensor.so.2"))
    run = box.under(box.script(START + """
cutensor = ctypes.CDLL(os.path.join(os.environ["LIB"], "libcutensor.so.2"))
cutensor.own_memory.restype = ctypes.c_uint64
a = cudrv.alloc(128)
cudrv.launch(copy, (1,), (32,), p(a), p(cutensor.own_memory(ctypes.c_size_t(4096))), i(32))
""" + OWN_NAN), "--guard=values", LIB=folder)
    same((run.status, box.verdict(run)["cause"]), (0, "none"), run.err[-2000:])


def rule__without_values_nothing_is_filled(box):
    quiet(box, """
a = cudrv.alloc(128)
print(cudrv.read_floats(a, 2))
""")


def rule__healthy_programs_are_left_alone(box):
    text = """
side, graph = cudrv.stream(), None
a, b = cudrv.alloc(4000), cudrv.alloc(1 << 20)
poke(a, 0, 1000)
cudrv.launch(copy, (4,), (250,), p(b), p(a), i(1000))
cudrv.begin_capture(side)
poke(a, 3, stream=side)
graph = cudrv.run_graph(cudrv.end_capture(side), side)
cudrv.synchronize()
print(sum(cudrv.read_floats(b, 1000)), cudrv.mem_info()[1])
for n in range(100):
    c = cudrv.alloc(10 + n)
    cudrv.call("cuMemsetD8_v2", p(c), 7, ctypes.c_size_t(10 + n))
    cudrv.free(c)
pitch, d = p(), p()
cudrv.call("cuMemAllocPitch_v2", ref(d), ref(pitch), ctypes.c_size_t(100), ctypes.c_size_t(3), 4)
print(pitch.value)
cudrv.free(d.value)
"""
    for guard in ("--guard", "--guard=align=256", "--guard=before", "--guard=values,align=256"):
        quiet(box, text, guard)


def rule__words_that_guard_does_not_know_are_refused(box):
    for words in ("befor", "align=8", "sample=8", "only=", "only=:3", "budget=3", "sample=1/0", "only=x.py:a-b"):
        run = box.under(box.script(START), "--guard=" + words, out=False)
        assert run.status == 2 and "does not know" in run.err, (words, run.err)


def rule__the_end_says_what_was_guarded(box):
    run = box.plain([box.cuwhy, "run", "--guard=sample=1/2", "--gpu", "sim:tiny"] + box.script(START + "a = cudrv.alloc(8)\nb = cudrv.alloc(8)\n"))
    assert re.search(r"cuwhy: --guard: 1 allocation guarded; 1 was not: only a sample was asked for\n", run.err), run.err
    run = box.plain([box.cuwhy, "run", "--guard", "true"])
    assert "--guard: nothing was guarded" in run.err, run.err


TORCH = """
import ctypes, os, sys
for name in ("libc10.so", "libc10_cuda.so", "libtorch_cuda.so"):
    last = ctypes.CDLL(os.path.join(os.environ["TORCH"], name), ctypes.RTLD_GLOBAL)
    c10 = last if name == "libc10_cuda.so" else globals().get("c10")
c10.tensor_new.restype = c10.bytes_now.restype = ctypes.c_uint64
def tensor(size):
    deleter = ctypes.c_uint64()
    return c10.tensor_new(ctypes.c_size_t(size), ctypes.byref(deleter)), deleter # made
def let_go(made):
    c10.tensor_free(ctypes.c_uint64(made[0]), made[1]) # let go
""" + START


def fake_torch(box, *flags):
    """Libraries with the names of PyTorch's, in a folder of their own."""
    folder = os.path.join(box.scratch, "torch")
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(HERE, "programs", "guard_table.c")
    for define, name in (("C10", "libc10.so"), ("C10_CUDA", "libc10_cuda.so"), ("TORCH_CUDA", "libtorch_cuda.so")):
        made = box.builder.compile(source, "guard_%s_%s.so" % (define, "_".join(flags)), ["-shared", "-fPIC", "-D" + define] + ["-D" + f for f in flags])
        os.link(made, os.path.join(folder, name))
    return folder


def torch_run(box, text, *flags, guard="--guard"):
    return box.under(box.script(TORCH + text), guard, gpu="sim:tiny,memory=1G", TORCH=fake_torch(box, *flags))


def rule__tensors_of_the_allocator_are_guarded(box):
    text = """
a, b = tensor(4000), tensor(4000)
poke(a[0], 999)
cudrv.synchronize()
print(c10.bytes_now(), c10.native_calls(), flush=True)
poke(a[0], 1000) # bad
cudrv.synchronize()
"""
    run = torch_run(box, text)
    verdict = box.verdict(run)
    same((run.out, verdict["cause"], verdict["certainty"]), ("8192 2\n", "illegal-access-out-of-bounds", "certain"), run.err[-2000:])
    says(verdict, "it was allocated at program.py:%d" % line_of(TORCH + text, "made"))
    same(verdict["guard"]["torch"], True, "PyTorch's allocator is guarded")


def rule__that_one_process_did_not_use_the_allocator_is_not_said_of_all(box):
    parent = """
import subprocess
a = tensor(4000) if len(sys.argv) < 2 else cudrv.alloc(4000)
if len(sys.argv) < 2:
    subprocess.check_call([sys.executable, __file__, "child"])
"""
    for text, used in ((parent, True), ("cudrv.alloc(4000)\n", False)):
        run = torch_run(box.fresh(), text)
        same(box.verdict(run)["guard"]["torch"], used, "PyTorch's allocator is guarded")


def rule__a_tensor_that_was_let_go_is_unmapped(box):
    text = """
a = tensor(4000)
poke(a[0], 5)
let_go(a)
print(c10.bytes_now(), flush=True)
poke(a[0], 5) # bad
cudrv.synchronize()
"""
    run = torch_run(box, text)
    verdict = box.verdict(run)
    same((run.out, verdict["cause"], verdict["certainty"]), ("0\n", "illegal-access-use-after-free", "certain"), run.err[-2000:])
    says(verdict, "its tensor was released at program.py:%d" % line_of(TORCH + text, "let go"))


def rule__tensors_that_are_left_out_come_from_the_allocator(box):
    run = torch_run(box, """
made = [tensor(4000) for n in range(8)]
poke(made[1][0], 999)
cudrv.synchronize()
for one in made:
    let_go(one)
print(c10.native_calls())
""", guard="--guard=sample=1/4")
    same((run.status, run.out), (0, "8\n"), run.err[-2000:])     # two trial blocks, and six of eight


def rule__segments_of_the_allocator_are_no_alarm(box):
    """Tensors that are left out lie in them: nobody knows which bytes somebody was to write."""
    for guard in ("--guard=values", "--guard=values,sample=1/4"):
        run = torch_run(box.fresh(), """
made = [tensor(4000) for n in range(8)]
for one in made:
    cudrv.launch(fill, (4,), (256,), p(one[0]), f(1), i(1000))
""" + OWN_NAN, guard=guard)
        same((run.status, run.out, box.verdict(run)["cause"]), (0, "nan\n", "none"), run.err[-2000:])


def rule__an_allocator_of_another_kind_is_refused(box):
    for flag, words in (("ODD", "does not answer as expected"), ("NAMELESS", "is not one that cuwhy knows")):
        run = torch_run(box.fresh(), "tensor(4000)\nprint('ended')\n", flag)
        same((run.status, run.out), (2, ""), flag)
        assert words in run.err, run.err


POOLS = """
BEGIN, END, GO = range(3)
c10.raw_new.restype = ctypes.c_uint64
def pool(what, number):
    c10.pool_call(what, ctypes.c_uint64(number))
let_go(tensor(4000))
side = cudrv.stream()
"""


def rule__a_pool_of_two_graphs_stays_with_the_second(box):
    text = POOLS + """
graphs = []
for n in range(2):
    pool(BEGIN, 1)
    cudrv.begin_capture(side)
    a = c10.raw_new(ctypes.c_size_t(4096), side)
    poke(a, 5, stream=side)
    c10.raw_free(p(a))
    graphs.append(cudrv.end_capture(side))
    pool(END, 1)
pool(GO, 1)
cudrv.free(cudrv.alloc(4096))
cudrv.run_graph(graphs[1], side)
cudrv.synchronize()
print("ended", flush=True)
"""
    run = torch_run(box, text)
    same((run.status, run.out, box.verdict(run)["cause"]), (0, "ended\n", "none"), run.err[-2000:])
    run = torch_run(box.fresh(), text + """
pool(GO, 1)
cudrv.free(cudrv.alloc(4096))
cudrv.run_graph(graphs[1], side)
cudrv.synchronize()
""")
    same((run.out, box.verdict(run)["cause"]), ("ended\n", "illegal-access-use-after-free"), run.err[-2000:])


def rule__a_pool_inside_a_pool_is_not_the_graphs(box):
    """When the inner one ends, tensors belong to the graph's again; they stay as long as the graph does."""
    run = torch_run(box, POOLS + """
pool(BEGIN, 1)
cudrv.begin_capture(side)
pool(BEGIN, 2)
c10.raw_free(p(c10.raw_new(ctypes.c_size_t(4096), side)))
pool(END, 2)
a = c10.raw_new(ctypes.c_size_t(4096), side)
poke(a, 5, stream=side)
c10.raw_free(p(a))
graph = cudrv.end_capture(side)
pool(END, 1)
pool(GO, 2)
cudrv.free(cudrv.alloc(4096))
cudrv.run_graph(graph, side)
cudrv.synchronize()
print("ended")
""")
    verdict = box.verdict(run)
    same((run.status, run.out, verdict["cause"], verdict["guard"]["not_guarded"]), (0, "ended\n", "none", {"pool": 1}), run.err[-2000:])


def rule__a_forked_child_lets_its_copies_go(box):
    """Of tensors that its parent has: the allocator does not know them, and PyTorch's ends a program that gives it such a pointer."""
    run = torch_run(box, """
made = [tensor(4000) for n in range(8)]
pid = os.fork()
if not pid:
    for one in made:
        let_go(one)
    print(c10.bytes_now(), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], c10.bytes_now())
poke(made[7][0], 5)
cudrv.synchronize()
""")
    verdict = box.verdict(run)
    same((run.status, run.out, verdict["cause"]), (0, "0\n0 32768\n", "none"), run.err[-2000:])
    assert "was not used" not in run.err, run.err
