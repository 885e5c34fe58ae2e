# SPDX-License-Identifier: Apache-2.0
"""On the simulated GPU, reads of values that only a real one can compute are named, once per line."""
import os

from rules_recorder import find_pythons
from toolbox import same

# A program that uses the CUDA runtime has kernels that compute nothing.
START = """
import ctypes, functools
import cudrv
ctypes.CDLL("libcudart.so.12")
cudrv.init()
data, host, size = ctypes.c_uint64(cudrv.alloc(4 << 20)), ctypes.create_string_buffer(4 << 20), ctypes.c_size_t
get = functools.partial(cudrv.call, "cuMemcpyDtoH_v2", host, data)
put = functools.partial(cudrv.call, "cuMemcpyHtoD_v2", data, host)
"""
LOOP = START + """
for step in range(1000):
    get(size(4))
"""
HELPER = START + """
def loss():
    get(size(4))
loss()
loss()
"""
KNOWN = START + """
host.value = b"seeds"
put(size(4096))
host.value = b"other"
get(size(4096))
assert host.value == b"seeds", host.value
"""
LARGE = START + """
put(size(2 << 20))
get(size(2 << 20))
"""
HALF = START + """
put(size(4))
get(size(8))
"""
FAILS = START + """
get(size(4))
cudrv.alloc(1 << 40)
"""
WAITS = START + """
for step in range(1500):
    get(size(4))
    assert host.raw[:4] == bytes(4)
rounds = 0
host[0] = 0
while not host.raw[0]:
    rounds += 1
    get(size(1))
assert rounds == 1001, rounds
"""
# Whether the copy was made for a check shows in the answer: 1 only where 0 would raise an exception.
CHECKS = START + """
copy = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2
one = size(1)
def if_true():
    if copy(host, data, one):
        raise ValueError("%s is %d" % (host.raw[:3], step))
def if_not():
    if not copy(host, data, one):
        raise ValueError("%s is %d" % (host.raw[:3], step))
def asserted():
    assert copy(host, data, one), "text"
def asserted_not():
    assert not copy(host, data, one)
def both():
    if one and not copy(host, data, one):
        raise ValueError
def either():
    if copy(host, data, one) or step < 0:
        raise ValueError
def far():
    if not copy(host, data, one):
        raise ValueError(LONG)
    return 1
def question():
    if copy(host, data, one):
        return 1
    return 2
def kept():
    x = copy(host, data, one)
    if x:
        raise ValueError
def whole():
    while not copy(host, data, one):
        return 1
answers = dict(if_true=0, if_not=1, asserted=1, asserted_not=0, both=1, either=0, far=1, question=0, kept=0, whole=0)
for step in range(3):
    for name, answer in answers.items():
        host[0] = 7
        try:
            globals()[name]()
        except (ValueError, AssertionError):
            pass
        assert host.raw[0] == answer, (name, host.raw[0])
for step in range(1500):
    host[0] = 7
    if_true()
    assert host.raw[0] == 0, step
""".replace("LONG", "(" + ", ".join("one.value + %d" % n for n in range(40)) + ")")
BUILT_IN = START.replace("ctypes.CDLL", "str") + "get(size(4))\n"
THREADS = START + """
import threading
context = ctypes.c_void_p()
cudrv.call("cuCtxGetCurrent", ctypes.byref(context))
def read():
    cudrv.call("cuCtxSetCurrent", context)
    for step in range(500):
        get(size(4))
threads = [threading.Thread(target=read) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
"""


def reads(box, text, status=0):
    """What is said about each line: its text, why, and how often."""
    run = box.under(box.script(text))
    same(run.status, status, "status (%s)" % run.err[-300:])
    dry, lines = box.verdict(run).get("dry_run") or {}, text.splitlines()
    return [(lines[r["line"] - 1].strip(), r["why"], r["count"]) for r in dry.get("unknown_reads", ())]


def printed(box, text):
    program = box.script(text)
    run = box.plain([box.cuwhy, "run", "--gpu", "sim:tiny", "--"] + program)
    return [line.replace(os.path.dirname(program[1]) + "/", "") for line in run.err.splitlines() if "value" in line]


def rule__reads_in_a_loop_are_one_line(box):
    same(reads(box, LOOP), [("get(size(4))", "computed", 1000)], "reads")
    same(reads(box, HELPER), [("get(size(4))", "computed", 2)], "reads by two callers")
    same(printed(box, LOOP), ["cuwhy: program.py:%d reads a value that only a real GPU can compute; what follows from it may differ"
                              % len(LOOP.splitlines())], "printed")


def rule__reads_of_what_the_host_wrote_are_not_named(box):
    same(reads(box, KNOWN), [], "reads")
    same(reads(box, LARGE), [("get(size(2 << 20))", "too large", 1)], "reads of what was not kept")
    same(reads(box, HALF), [("get(size(8))", "computed", 1)], "reads of what it wrote in part")
    same(reads(box, BUILT_IN), [], "reads where kernels compute")


def rule__reads_before_a_failure_are_named(box):
    same(reads(box, FAILS, 1), [("get(size(4))", "computed", 1)], "reads")
    same(len(printed(box, FAILS)), 1, "printed")


def rule__reads_beyond_five_lines_are_counted(box):
    same(printed(box, START + "get(size(4))\n" * 9)[5:], ["cuwhy: 4 more lines read such values (--json lists them all)"], "printed")
    same(printed(box, START + "get(size(4))\n" * 6)[5:], ["cuwhy: 1 more line reads such a value (--json lists them all)"], "printed")
    same(printed(box, START + "get(size(4))\n" * 200)[5:], ["cuwhy: at least 123 more lines read such values (--json lists them all)"],
         "printed")


def rule__reads_of_threads_are_all_counted(box):
    same(reads(box, THREADS), [("get(size(4))", "computed", 4000)], "reads")


def rule__a_loop_that_waits_for_a_truth_value_ends(box):
    """Only truth values are turned, and the line is named first."""
    same(reads(box, WAITS), [("get(size(1))", "computed", 1001), ("get(size(4))", "computed", 1500)], "reads")
    run = box.plain([box.cuwhy, "run", "--gpu", "sim:tiny", "--"] + box.script(WAITS))
    asked = [line for line in run.err.splitlines() if "asks the GPU again and again whether something is true" in line]
    same(len(asked), 1, "lines that got another answer (%s)" % run.err)


def rule__a_check_that_raises_gets_the_answer_with_which_it_does_not(box):
    """Read from the bytecode, so with every version of Python; and never turned."""
    for version, python in sorted({**find_pythons(), "": box.python}.items()):
        if version == "3.14":
            continue        # its bytecode is not known
        run = box.plain([box.cuwhy, "run", "--gpu", "sim:tiny", "--", python] + box.script(CHECKS)[1:])
        same(run.status, 0, "exit status with Python %s (%s)" % (version, run.err[:800]))
