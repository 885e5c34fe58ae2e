# SPDX-License-Identifier: Apache-2.0
"""Other libraries in the same process: their dlsym, their RTLD_NEXT, their errors stay theirs."""
import os
import shutil

from toolbox import same

DLSYM = """
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1, 1, 65536), (1,))
"""


def with_another_dlsym(box, order):
    """A program that finds the driver by dlsym, with another library that also wraps dlsym."""
    log = os.path.join(box.scratch, "log")
    shell = 'LD_PRELOAD="%s" exec "$@"' % order.format(other=box.library("other_dlsym", "-ldl"), ours="$LD_PRELOAD")
    run = box.under(["/bin/sh", "-c", shell, "sh"] + box.script(DLSYM), OTHER_LOG=log)
    same(run.status, 1, "status (%s)" % run.err)
    same(box.verdict(run)["cause"], "launch-config-grid-limit", "cause")
    with open(log, encoding="utf-8") as stream:
        assert "cuInit" in stream.read(), "the other library's dlsym was passed over"


def rule__another_dlsym_behind_ours_is_called(box):
    with_another_dlsym(box, "{ours}:{other}")


def rule__another_dlsym_before_ours_is_called(box):
    with_another_dlsym(box, "{other}:{ours}")


def rule__rtld_next_means_the_callers_next(box):
    second = box.library("next_second")
    first = box.library("next_first", "-ldl")
    program = box.program("next", "-Wl,--no-as-needed", first, second, "-ldl",
                          "-Wl,-rpath," + os.path.dirname(first))
    plain = box.plain([program])
    same(plain.out, "first second\nmissing yes\ndefault first second\n", "the plain program")
    for gpu in (None, "sim:tiny"):
        run = box.under([program], gpu=gpu)
        same((run.status, run.out), (plain.status, plain.out), "under cuwhy")


def rule__only_exact_names_are_answered(box):
    program = box.program("names", "-ldl")
    plain, run = box.plain_sim([program]), box.under([program])
    same(plain.status, 0, "status of the plain program")
    same((run.status, run.out), (plain.status, plain.out), "names found in libcuda and elsewhere")


def rule__a_library_that_looks_like_libcuda_is_left_alone(box):
    fake = box.library("fake_cuda")
    program = box.program("use_fake", "-ldl")
    plain, run = box.plain([program, fake]), box.under([program, fake], gpu=None)
    same(plain.out, "fake 77\n", "the plain program")
    same((run.status, run.out), (plain.status, plain.out), "under cuwhy")


def rule__a_driver_without_the_usual_functions_is_not_recorded(box):
    """The same library under the driver's name: it works as before, and the recording says why it is empty."""
    folder = os.path.join(box.scratch, "driver")
    os.mkdir(folder)
    half = shutil.copy(box.library("fake_cuda"), os.path.join(folder, "libcuda.so.1"))
    run = box.under([box.program("use_fake", "-ldl"), half], gpu=None)
    same((run.status, run.out), (0, "fake 77\n"), "the program")
    same(box.parts(run)[0]["off_because"], 1, "reason in the recording")
