# SPDX-License-Identifier: Apache-2.0
"""The first NaN or infinity that a program reads from the GPU is told when the program fails: what, where, in which iteration."""
import os
import struct

from toolbox import same

START = """
import ctypes, struct
import cudrv
cudrv.init()
size, data, stream = ctypes.c_size_t, ctypes.c_uint64(cudrv.alloc(4096)), ctypes.c_void_p()
cudrv.call("cuStreamCreate", ctypes.byref(stream), 0)
pinned = ctypes.c_void_p()
cudrv.call("cuMemHostAlloc", ctypes.byref(pinned), size(4096), 0)
def put(raw):
    cudrv.call("cuMemcpyHtoD_v2", data, raw, size(len(raw)))
def read(n, to=None):
    to = to or ctypes.create_string_buffer(n)
    cudrv.call("cuMemcpyDtoHAsync_v2", to, data, size(n), stream)
    cudrv.call("cuStreamSynchronize", stream)
def read_at_once(n):
    cudrv.call("cuMemcpyDtoH_v2", ctypes.create_string_buffer(n), data, size(n))
def read_anywhere(n):
    cudrv.call("cuMemcpyAsync", ctypes.create_string_buffer(n), data, size(n), stream)
"""
END = "raise SystemExit(3)\n"
FAILS = "cudrv.alloc(1 << 50)\n"
LOOP = START + """
for step in range(6):
    put(struct.pack("f", float("nan") if step >= 3 else step))
    %s
""" + END


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def told(box, text, status=3, options=()):
    """What the last lines say of it; None: nothing."""
    script = box.script(text)
    run = box.plain([box.cuwhy, "run", "--gpu", "sim:tiny", *options, "--"] + script)
    same(run.status, status, "status (%s)" % run.err[-400:])
    said = [line.partition("the program had read ")[2].replace(os.path.dirname(script[1]) + "/", "") for line in run.err.splitlines() if "the program had read" in line]
    return (said or [None])[0]


def program(text, part):
    return "program.py:%d" % line_of(text, part)


INSIDE = {"read(4)": "DtoHAsync_v2", "read(4, pinned)": "DtoHAsync_v2", "read_at_once(4)": "DtoH_v2", "read_anywhere(4)": "cuMemcpyAsync"}


def rule__the_first_value_that_is_no_number_is_told_with_its_iteration(box):
    for how in INSIDE:
        text = LOOP % how
        same(told(box, text), "NaN at %s, in iteration 4 of the loop at %s; copied to the GPU at %s" % (
            program(text, INSIDE[how]), program(text, "for step"), program(text, "HtoD_v2")), how)


def rule__formats_of_each_size_are_known(box):
    for raw, word in ((struct.pack("f", float("inf")), "infinity"), (struct.pack("d", float("-inf")), "-infinity"),
                      (struct.pack("d", float("nan")), "NaN")):
        text = START + "put(%r)\nread(%d)\n" % (raw, len(raw)) + END
        same(told(box, text), "%s at %s; copied to the GPU at %s" % (word, program(text, "DtoHAsync_v2"), program(text, "HtoD_v2")), word)


def rule__integers_and_numbers_are_left_alone(box):
    """What could be a NaN as well as an integer is one only if a kernel says so."""
    numbers = [struct.pack("i", n) for n in (-1, 2 ** 31 - 1, -2 ** 23, -2 ** 22, -100, 0)] + [struct.pack("q", n) for n in (-1, 2 ** 63 - 1, -2 ** 63, -100)]
    numbers += [struct.pack("h", n) for n in (-1, 2 ** 15 - 1, 0x7c00)] + [struct.pack("f", 3.4e38), struct.pack("d", -1.7e308)]
    text = START + "".join("put(%r)\nread(%d)\n" % (raw, len(raw)) for raw in numbers) + END
    same(told(box, text), None, "told")
    text = START + "put(struct.pack('8f', *[float('nan')] * 8))\nread(32)\n" + END
    same(told(box, text), None, "told of several values at once")


def rule__pinned_memory_is_read_only_right_after_the_wait(box):
    """It could be gone, or hold another value."""
    text = START + "put(struct.pack('f', float('nan')))\ncudrv.call('cuMemcpyDtoHAsync_v2', pinned, data, size(4), stream)\n" + \
        "cudrv.call('cuMemFreeHost', pinned)\ncudrv.call('cuStreamSynchronize', stream)\n" + END
    same(told(box, text), None, "told")


def rule__it_stands_in_the_verdict_of_a_failure(box):
    text = START + "put(struct.pack('f', float('nan')))\nread(4)\nread(4)\n" + FAILS
    number = box.verdict(box.under(box.script(text)))["number"]
    same((number["value"], number["times"], number["where"]["line"]), ("NaN", 1, line_of(text, "DtoHAsync_v2")), "in the JSON")


def rule__nothing_is_told_of_a_run_that_ends_well_or_keeps_no_values(box):
    text = START + "put(struct.pack('f', float('nan')))\nread(4)\n"
    same(told(box, text, 0), None, "of a run that ends well")
    same(told(box, text + END, 3, ("--no-values",)), None, "with --no-values")


def rule__memory_that_another_thread_freed_is_not_touched(box):
    """Which waits for the copy and unmaps where it went to; the wait of the thread that began the copy comes next."""
    program = box.program("gone", "-lcuda", "-lpthread")
    for how in ("out", "in"):
        run = box.under([program, how])
        same((run.status, run.out), (0, "fine\n"), how + run.err[-300:])


def rule__what_the_program_wrote_there_itself_is_not_told(box):
    """It saw the copy arrive, and uses the memory for something else before it waits."""
    text = START + "put(struct.pack('f', 1.0))\ncudrv.call('cuMemcpyDtoHAsync_v2', pinned, data, size(4), stream)\n" + \
        "while cudrv.cuda.cuStreamQuery(stream):\n    pass\nctypes.c_float.from_address(pinned.value).value = float('nan')\n" + \
        "cudrv.call('cuStreamSynchronize', stream)\n" + END
    same(told(box, text), None, "told")


def rule__a_copy_within_the_host_is_not_read_from_the_gpu(box):
    text = START + "cudrv.call('cuMemcpy', ctypes.create_string_buffer(4), struct.pack('f', float('nan')), size(4))\n" + END
    same(told(box, text), None, "told")


KERNELS = START + """
from cudrv import u64, f32, i32
fill = cudrv.kernel("fill")
def compute(value):
    cudrv.launch(fill, (1,), (32,), data, f32(value), i32(8))
"""


def rule__of_memory_that_held_other_arrays_only_the_last_use_is_told(box):
    text = KERNELS + "before = data.value\ncompute(1)\ncudrv.free(before)\ndata.value = cudrv.alloc(4096)\nassert data.value == before\n" + \
        "cudrv.launch(fill, (1,), (32,), data, f32(float('nan')), i32(8))  # last\nread_at_once(4)\n" + END
    same(told(box, text), "NaN at %s; last used by a kernel of %s" % (program(text, "DtoH_v2"), program(text, "# last")), "told")


def rule__a_copy_that_a_kernel_may_have_overwritten_is_not_all_that_is_told(box):
    text = KERNELS + "put(struct.pack('f', float('nan')))\ncudrv.launch(fill, (1,), (32,), data, f32(float('nan')), i32(8))  # last\nread_at_once(4)\n" + END
    same(told(box, text), "NaN at %s; copied to the GPU at %s, last used by a kernel of %s" % (
        program(text, "DtoH_v2"), program(text, "HtoD_v2"), program(text, "# last")), "told")
