# SPDX-License-Identifier: Apache-2.0
"""GPU core dumps: what `cuwhy explain FILE` reads out of dumps that the simulated GPU wrote."""
import json
import os
import subprocess

from toolbox import same

PROGRAM = """
import cudrv, ctypes, os, sys, threading, time
context = cudrv.init()
data = cudrv.alloc(4096)
p, l, i = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int
def ask():
    time.sleep(0.3)     # a request on an idle GPU is a dump of an idle GPU: then it is repeated
    while True:
        with open(os.environ["CUDA_COREDUMP_PIPE"], "wb") as pipe:
            pipe.write(bytes(1 << 20))
        time.sleep(1)
try:
    cudrv.launch(cudrv.kernel(sys.argv[1]), (2,), (64,), *eval(sys.argv[2]))
    if "hang" in sys.argv[1]:
        threading.Thread(target=ask, daemon=True).start()
    cudrv.synchronize()
except cudrv.CudaError as error:
    sys.exit(10)
"""


def dump_of(box, kernel, args, **more):
    """The dump that the driver writes for a faulting kernel, as requested by a user."""
    path = os.path.join(box.scratch, "core")
    env = dict(CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_FILE=path,
               CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION="0", **more)
    box.plain_sim(box.script(PROGRAM) + [kernel, args], gpu="h200",
                  PYTHONPATH=os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"), **env)
    return path


def explain(box, path):
    run = subprocess.run([box.cuwhy, "explain", "--json", path], capture_output=True, text=True, env=box.env())
    same(run.returncode, 1, "status of explain (%s)" % run.stdout[:300])
    return json.loads(run.stdout)


def rule__a_dump_names_the_kernel_the_thread_and_the_address(box):
    verdict = explain(box, dump_of(box, "oob_store", "(p(data), l(1 << 40))"))
    same((verdict["cause"], verdict["error"]["code"]), ("illegal-access-out-of-bounds", 700), "cause and code")
    same((verdict["kernel"]["name"], verdict["kernel"]["grid"], verdict["kernel"]["block"]),
         ("oob_store(float*, long)", [2, 1, 1], [64, 1, 1]), "the launch")
    fault = verdict["fault"]
    same((fault["access"], fault["bytes"], fault["block"], fault["thread"]), ("write", 4, [0, 0, 0], [0, 0, 0]), "fault")
    assert int(fault["address"], 16) >> 40, fault["address"]
    assert fault["pc"].startswith("oob_store+0x"), fault["pc"]


def rule__each_kind_of_fault_has_its_cause(box):
    for kernel, args, cause in (("oob_load", "(p(data), p(data), l(1 << 40))", "illegal-access-out-of-bounds"),
                                ("misaligned", "(p(data),)", "misaligned-address"),
                                ("assert_fail", "()", "kernel-assert"),
                                ("trap", "()", "kernel-trap"),
                                ("illegal_instruction", "()", "kernel-trap"),
                                ("stack_overflow", "(p(data), i(1 << 20))", "kernel-stack-overflow")):
        path = dump_of(box, kernel, args)
        same(explain(box, path)["cause"], cause, kernel)
        os.unlink(path)


def rule__a_dump_of_a_running_gpu_is_no_fault(box):
    pipe = os.path.join(box.scratch, "pipe")
    path = dump_of(box, "hang", "(p(0),)", CUDA_ENABLE_USER_TRIGGERED_COREDUMP="1", CUDA_COREDUMP_PIPE=pipe)
    verdict = explain(box, path)
    same((verdict["cause"], verdict["certainty"]), ("kernel-hang", "possible"), "cause")
    same(verdict["kernel"]["name"], "hang(int*)", "kernel")


def rule__a_damaged_dump_is_refused_in_words(box):
    path = dump_of(box, "oob_store", "(p(data), l(1 << 40))")
    with open(path, "rb") as stream:
        whole = stream.read()
    for cut in (70, 500, len(whole) // 2, len(whole) - 100):
        with open(path, "wb") as stream:
            stream.write(whole[:cut])
        run = subprocess.run([box.cuwhy, "explain", "--json", path], capture_output=True, text=True, env=box.env())
        assert run.returncode in (1, 2), run
        json.loads(run.stdout)


TWO = """
import cudrv
cudrv.init()
nop, trap = cudrv.kernel("nop"), cudrv.kernel("trap")
cudrv.launch(nop, (1,), (1,))
cudrv.launch(trap, (1,), (1,))
cudrv.synchronize()
"""


def rule__without_a_dump_the_suspects_are_listed(box):
    with_dump = box.verdict(box.under(box.script(TWO)))
    same((with_dump["cause"], with_dump["certainty"], with_dump["where"]["line"]), ("kernel-trap", "certain", 6), "with")
    assert any(name.endswith(".cudacore") for name in os.listdir(os.path.join(box.scratch, "recording")))
    without = box.verdict(box.under(box.script(TWO), "--no-core-dump"))
    same((without["cause"], without["certainty"]), ("kernel-trap", "possible"), "without a dump")
    same([s["line"] for s in without["suspects"]], [6, 5], "suspects")


def rule__older_drivers_dump_without_abort_too(box):
    run = box.under(box.script(TWO), gpu="sim:tiny,driver=12010")
    same((run.status, box.verdict(run)["certainty"]), (1, "certain"), "status and certainty")


def rule__the_users_own_dump_settings_are_respected(box):
    path = os.path.join(box.scratch, "mine")
    run = box.under(box.script(TWO), CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_FILE=path,
                    CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION="0")
    assert os.path.exists(path), run.err[-500:]
    assert not any(name.endswith(".cudacore") for name in os.listdir(run.folder))


def rule__a_clean_program_under_dumps_is_as_ever(box):
    run = box.under(box.script(TWO.replace('"trap"', '"nop"')))
    same((run.status, run.out), (0, ""), "status and output")
    same(box.verdict(run)["cause"], "none", "cause")


AFTER = """
import ctypes, sys, time, cudrv
cudrv.init()
data, nop, bad = cudrv.alloc(4096), cudrv.kernel("nop"), cudrv.kernel(sys.argv[1])
p, l = ctypes.c_uint64, ctypes.c_int64
def code(function, *args):
    try:
        function(*args)
        return 0
    except cudrv.CudaError as error:
        return error.code
cudrv.launch(bad, (1,), (32,), *eval(sys.argv[2]))
for pause in (0, 0, 0.3):
    time.sleep(pause)
    print(code(cudrv.synchronize), code(cudrv.launch, nop, (1,), (1,)), code(cudrv.read_floats, data, 4))
"""


def rule__a_dump_changes_no_error_that_the_program_sees(box):
    """The driver itself says nothing at first, and later reports the wrong error for an assertion."""
    for kernel, args, code in (("assert_fail", "()", 710), ("oob_store", "(p(data), l(1 << 40))", 700),
                               ("misaligned", "(p(data),)", 716), ("trap", "()", 719)):
        program = box.script(AFTER) + [kernel, args]
        plain, run = box.under(program, "--no-core-dump"), box.under(program)
        same((run.status, run.out), (plain.status, plain.out), kernel)
        same(run.out, "%d %d %d\n" % (code, code, code) * 3, kernel)
        assert any(name.endswith(".cudacore") for name in os.listdir(run.folder)), kernel


def rule__launches_that_cannot_be_told_apart_are_both_named(box):
    twice = TWO.replace("cudrv.launch(nop, (1,), (1,))", "cudrv.launch(trap, (1,), (1,))")
    run = box.under(box.script(twice))
    where = box.verdict(run)["where"]
    same((where["line"], [other["line"] for other in where["or"]]), (6, [5]), "lines")
    text = subprocess.run([box.cuwhy, "explain", "-v", run.folder], capture_output=True, text=True, env=box.env()).stdout
    assert "program.py:5, which launched the same kernel" in text, text


LATE = """
import ctypes, os, sys, cudrv
cudrv.init()
data = cudrv.alloc(4096)
cudrv.launch(cudrv.kernel("oob_store"), (1,), (32,), ctypes.c_uint64(data), ctypes.c_int64(1 << 40))
while cudrv.cuda.cuStreamQuery(None) == 600:
    pass
print("all is well", flush=True)
%s
"""


def rule__a_program_that_ends_before_its_fault_is_known_fails_too(box):
    """A program that polls may see its work done before there is a dump; without dumps it would not have."""
    for end in ("", "os._exit(0)", 'cudrv.call("cuDevicePrimaryCtxRelease_v2", 0)'):
        run = box.under(box.script(LATE % end), gpu="sim:tiny,late_dumps")
        same(run.status, 1, "status after %r (%s)" % (end, run.err[-300:]))
        verdict = box.verdict(run)
        same((verdict["cause"], verdict["certainty"], verdict["where"]["line"]),
             ("illegal-access-out-of-bounds", "certain", 5), "verdict after %r" % end)


def rule__an_assertion_whose_dump_is_lost_is_still_an_assertion(box):
    for end in ("", 'code(cudrv.call, "cuDevicePrimaryCtxRelease_v2", 0)'):
        run = box.under(box.script(AFTER + end) + ["assert_fail", "()"], gpu="sim:tiny,lost_dumps")
        same((run.status, run.out), (0, "710 710 710\n" * 3), "what the program sees")
    run = box.under(box.script(TWO.replace('"trap"', '"assert_fail"')), gpu="sim:tiny,lost_dumps")
    verdict = box.verdict(run)
    same((verdict["cause"], verdict["certainty"], verdict["error"]["code"]), ("kernel-assert", "likely", 710), "verdict")
    assert any("did not write one" in why for why in verdict["why"]), verdict["why"]


def rule__a_719_with_half_a_dump_may_be_an_assertion(box):
    """A driver that fails in the middle leaves a file that cannot be read. That only happens after assertions, but 719 is also a trap."""
    run = box.under(box.script(TWO))
    same(box.verdict(run)["certainty"], "certain", "with the whole dump")
    core = next(os.path.join(run.folder, name) for name in os.listdir(run.folder) if name.endswith(".cudacore"))
    os.truncate(core, os.path.getsize(core) // 2)
    verdict = explain(box, run.folder)
    same(sorted((c["cause"], c["certainty"]) for c in verdict["candidates"]),
         [("kernel-assert", "possible"), ("kernel-trap", "possible")], "candidates")


FIRST = """
import ctypes, os, sys, threading, time, cudrv
context = cudrv.init()
data, called = cudrv.alloc(4096), threading.Event()
def wait(*args):
    cudrv.call("cuCtxSetCurrent", context)
    began = time.monotonic()
    called.set()
    try:
        cudrv.synchronize()
        code = 0
    except cudrv.CudaError as error:
        code = error.code
    print(code, round(time.monotonic() - began), flush=True)
    return code
cudrv.launch(cudrv.kernel(sys.argv[1]), (1,), (32,), *eval(sys.argv[2]))
"""
FIRST_LINE = 16
STORE = ["oob_store", "(ctypes.c_uint64(data), ctypes.c_int64(1 << 40))"]
ENDS = ("cudrv.synchronize()", "os._exit(3 if wait() else 0)", "wait(); sys.exit(3)",
        # the thread that has the error is not the one that ends the program
        "t = threading.Thread(target=wait, daemon=True); t.start(); called.wait(); time.sleep(0.5); sys.exit(3)",
        "t = [threading.Thread(target=wait) for i in range(8)]; [i.start() for i in t]; [i.join() for i in t]; sys.exit(3)")


def rule__an_error_that_comes_before_its_dump_waits_for_it(box):
    """As with the first fault after boot, while the library that writes dumps is loaded from disk."""
    for end in ENDS:
        run = box.under(box.script(FIRST + end) + STORE, gpu="sim:tiny,error_first=1500")
        same(run.status, 1 if end == ENDS[0] else 3, "status after %r (%s)" % (end, run.err[-300:]))
        verdict = box.verdict(run)
        same((verdict["cause"], verdict["certainty"], verdict["where"]["line"]),
             ("illegal-access-out-of-bounds", "certain", FIRST_LINE), "verdict after %r" % end)
    run = box.under(box.script(FIRST + "wait(); sys.exit(3)") + ["assert_fail", "()"], gpu="sim:tiny,error_first=600")
    same((run.out.split()[0], box.verdict(run)["certainty"]), ("710", "certain"), "an assertion")


# What writes the dump finds it changed: with error_first, it lies complete under another name when the program has its error.
CRAFTED = """
import struct
def finished():
    path = os.path.join(os.path.dirname(os.environ["CUWHY_SOCK"]), "core-%d.part" % os.getpid())
    while True:
        if os.path.exists(path):
            core = bytearray(open(path, "rb").read())
            if len(core) > 64:
                start, count = struct.unpack_from("<Q", core, 40)[0], struct.unpack_from("<H", core, 60)[0]
                if start and count and len(core) >= start + 64 * count:
                    return path, core
        time.sleep(0.001)
def rows(core, kind):
    start, count = struct.unpack_from("<Q", core, 40)[0], struct.unpack_from("<H", core, 60)[0]
    for i in range(count):
        here, at, size = struct.unpack_from("<I", core, start + 64 * i + 4)[0], *struct.unpack_from("<QQ", core, start + 64 * i + 24)
        each = struct.unpack_from("<Q", core, start + 64 * i + 56)[0]
        if here == kind:
            yield from range(at, at + size, each)
"""
LANES, SMS = "((at + 32) for at in rows(core, 0x8000000f))", "((at + 8) for at in rows(core, 0x8000000b))"
EXCEPTIONS = """
path, core = finished()
for places, numbers in ((%s, %s), (%s, %s)):
    for place, number in zip(list(places), numbers):
        struct.pack_into("<I", core, place, number)
open(path, "wb").write(core)
sys.exit(3 if wait() else 0)
"""
NO, FAILED, ADDRESS, OTHER = 0, 12, 14, 18


def rule__an_assertion_that_is_not_the_first_exception_is_one(box):
    """While an assertion is dumped, other threads go on. Lanes: 32; multiprocessors: at least 3."""
    for lanes, sms, code in (([ADDRESS] * 31 + [FAILED], [ADDRESS], 710), ([NO] * 16 + [OTHER] * 8 + [FAILED] * 8, [OTHER], 710),
                             ([ADDRESS] * 32, [ADDRESS, NO, FAILED], 710), ([NO] * 32, [NO, ADDRESS, FAILED], 710),
                             ([OTHER] * 32, [NO, OTHER, OTHER], 719), ([NO] * 32, [NO], 719)):
        text = FIRST + CRAFTED + EXCEPTIONS % (LANES, lanes, SMS, sms)
        run = box.under(box.script(text) + ["assert_fail", "()"], gpu="sim:tiny,error_first=1000")
        verdict, case = box.verdict(run), "%r %r %s" % (lanes, sms, run.err[-500:])
        same((run.status, run.out.split()[0], verdict["error"]["code"]), (3, str(code), code), case)
        same(verdict["cause"] == "kernel-assert", code == 710, case)


GROWS = """
path, core = finished()
def write():
    with open(path[:-5], "wb", buffering=0) as stream:
        for i in range(%d):
            stream.write(core[len(core) * i // 6:len(core) * (i + 1) // 6])
            time.sleep(4)
threading.Thread(target=write, daemon=True).start()
began = time.monotonic()
code = wait()
sys.exit(3 if %s else 4)
"""


def rule__a_dump_that_still_grows_is_waited_for(box):
    """10 s suffice for nearly all; a slow disk takes longer. One that does not grow anymore is not waited for."""
    text = FIRST + CRAFTED + GROWS % (6, "code == 710 and time.monotonic() - began > 15")
    run = box.under(box.script(text) + ["assert_fail", "()"], gpu="sim:tiny,error_first=3600000")
    same((run.status, box.verdict(run)["certainty"]), (3, "certain"), "%s %s" % (run.out, run.err[-500:]))
    run = box.under(box.script(FIRST + CRAFTED + GROWS % (2, "code == 719")) + ["assert_fail", "()"], gpu="sim:tiny,error_first=3600000")
    same(run.status, 3, "%s %s" % (run.out, run.err[-500:]))
    same(sorted(c["cause"] for c in box.verdict(run)["candidates"]), ["kernel-assert", "kernel-trap"], "half a dump")


def rule__a_program_that_goes_on_has_its_dump_too(box):
    """Whatever it does afterwards, and whatever the children do that it starts while a thread waits."""
    after = """
thread = threading.Thread(target=wait)
thread.start()
time.sleep(0.3)
child = os.fork()
if not child:
    os._exit(5)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
thread.join()
print([wait() for i in range(3)])
"""
    run = box.under(box.script(FIRST + after) + STORE, gpu="sim:tiny,error_first=1500")
    lines = run.out.splitlines()
    same((run.status, "child 5" in lines, lines[-1]), (0, True, "[700, 700, 700]"), "what it saw")
    note = box.verdict(run)["notes"][0]
    same((note["cause"], note["certainty"]), ("illegal-access-out-of-bounds", "certain"), "note")


def rule__a_dump_that_never_comes_is_waited_for_once(box):
    many = """
t = [threading.Thread(target=lambda i=i: (time.sleep(i), wait())) for i in range(4)]
[i.start() for i in t]; [i.join() for i in t]
began = time.monotonic()
print([wait() for i in range(20)])
sys.exit(3 if time.monotonic() - began < 60 else 4)      # each would wait for 5 s
"""
    run = box.under(box.script(FIRST + many) + STORE, gpu="sim:tiny,error_first=3600000")
    same((run.status, run.out.splitlines()[-1]), (3, str([700] * 20)), "status and codes (%s)" % run.err[-300:])
    waits = [int(line.split()[1]) for line in run.out.splitlines() if line.startswith("700")]
    # later ones were released with the first, even on a slow machine
    same([w < max(waits) for w in waits[:4]].count(True) >= 3 and 4 <= max(waits), True, "waits %r" % waits[:4])
    same(box.verdict(run)["certainty"] != "certain", True, "no dump")


def rule__a_program_killed_while_its_dump_is_written_is_judged_without(box):
    kill = """
threading.Thread(target=wait).start()
folder = os.path.dirname(os.environ["CUWHY_SOCK"])
while not any(name.startswith("core-") and not name.endswith("part") for name in os.listdir(folder)):
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""
    run = box.under(box.script(FIRST + kill) + STORE, gpu="sim:tiny,error_first=300")
    same(run.status, 137, "status")
    again = subprocess.run([box.cuwhy, "explain", "--json", run.folder], capture_output=True, text=True, env=box.env())
    same(json.loads(again.stdout)["cause"], box.verdict(run)["cause"], "the same when it is asked again")


def rule__threads_that_go_on_do_not_hold_up_the_end(box):
    argv = [box.program("loose", "-lcuda", "-lpthread")]
    for how in ("exit", "release"):
        same(box.plain_sim(argv + [how]).status, 3, "status of the plain program")
        same(box.under(argv + [how]).status, 3, "status at " + how)      # it does end


def rule__what_wrote_a_dump_cannot_crash_the_end_of_a_program(box):
    """The driver's exit handler sometimes does."""
    for kernel in ("assert_fail", "trap"):
        run = box.under(box.script(AFTER + "sys.exit(3)") + [kernel, "()"], gpu="sim:tiny,debugger_crashes")
        same((run.status, len(run.out.splitlines())), (3, 3), "status and output (%s)" % run.err[-300:])
        same(box.verdict(run)["process"]["exit"], 3, "the recorded status")
    run = box.under(box.script(LATE % ""), gpu="sim:tiny,late_dumps,debugger_crashes")
    same((run.status, run.out), (1, "all is well\n"), "status and output when the fault comes late")


def rule__synchronous_launches_are_not_dumped(box):
    run = box.under(box.script(TWO), CUDA_LAUNCH_BLOCKING="1")
    same((run.status, box.verdict(run)["certainty"] != "certain"), (1, True), "status, and no dump")
    assert not any(name.endswith(".cudacore") for name in os.listdir(run.folder))


PROFILED = """
import ctypes, sys
import cudrv
if sys.argv[1] == "early":                  # before the recorder has anything to arm
    cupti = ctypes.CDLL("libcupti.so.13")
    assert cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), ctypes.c_void_p(1), None) == 0
cudrv.call("cuInit", 0)
if sys.argv[1] == "armed":
    cupti = ctypes.CDLL("libcupti.so.13")
    assert cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), ctypes.c_void_p(1), None) == 0
cudrv.init()
if sys.argv[1] == "late":
    cupti = ctypes.CDLL("libcupti.so.13")
    assert cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), ctypes.c_void_p(1), None) == 0
data = cudrv.alloc(4096)
cudrv.launch(cudrv.kernel("oob_store"), (2,), (64,), ctypes.c_uint64(data), ctypes.c_int64(1 << 40))
cudrv.synchronize()
"""


def rule__dumps_step_aside_for_a_profiler(box):
    for when, dumped in (("never", True), ("early", False), ("armed", False), ("late", True)):
        run = box.under(box.script(PROFILED) + [when], gpu="sim:h200")
        verdict = box.verdict(run)
        same(verdict["error"]["code"], 700, when)
        same(bool(verdict["fault"] and verdict["fault"].get("address")), dumped, "a dump, %s" % when)
        said = [e["text"] for e in verdict["evidence"] if "there is no GPU core dump: a profiler" in e["text"]]
        same(len(said), 0 if dumped else 1, "what is said, %s" % when)


TTIR = """#loc = loc("/home/me/kernels.py":6:0)
module {
  tt.func public @%s(%%out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("%s"(#loc)), %%index: i64 loc("index"(#loc))) attributes {noinline = false} {
"""


def rule__parameters_of_a_triton_kernel_have_names(box):
    """From Triton's cache: if all that it has of this kernel says the same, and the sizes are those that the driver reports."""
    text = """
import ctypes, cudrv
cudrv.init()
store = cudrv.function(cudrv.module(cudrv.image("oob_store mangled=fill_rows")), "fill_rows")
a = cudrv.alloc(4096)
cudrv.launch(store, (1,), (1,), ctypes.c_uint64(a), ctypes.c_int64(1))
cudrv.synchronize()
cudrv.launch(store, (1,), (1,), ctypes.c_uint64(a), ctypes.c_int64(1 << 20))
cudrv.synchronize()
"""
    kept = {"own": TTIR % ("fill_rows", "out_ptr"), "other_sizes": TTIR.replace("i64", "i32") % ("fill_rows", "wrong"),
            "other_kernel": TTIR % ("fill_row", "wrong"), "broken": "tt.func public @fill_rows(%x: "}
    for more, name in (({}, "out_ptr"), ({"again": TTIR % ("fill_rows", "rows_ptr")}, None)):
        inside = box.fresh()
        folder = os.path.join(inside.scratch, "triton")
        for hash_name, ttir in dict(kept, **more).items():
            os.makedirs(os.path.join(folder, hash_name))
            with open(os.path.join(folder, hash_name, "fill_rows.ttir"), "w", encoding="utf-8") as stream:
                stream.write(ttir)
        run = inside.under(inside.script(text), TRITON_CACHE_DIR=folder)
        verdict = inside.verdict(run)
        same((verdict["cause"], verdict["fault"]["memory"]["parameter_name"]), ("illegal-access-out-of-bounds", name), run.err[-2000:])
        told = "of the kernel (counted from 0)%s points into it" % (", %s," % name if name else "")
        assert any(told in why for why in verdict["why"]), verdict["why"]
        # the second parameter has the same name everywhere
        same(verdict["kernel"]["arguments"], "index = %d" % (1 << 20), "arguments")
        assert "the kernel was given index = 1048576" in verdict["why"], verdict["why"]
        # what Triton says it points to is f32 in all of them
        same(verdict["fault"]["element"], {"index": 1 << 20, "of": 1024, "bytes": 4}, "element")
