# SPDX-License-Identifier: Apache-2.0
"""What programs do that a guest in their process must survive, and must not make worse."""
import os
import shutil

from rules_recorder import find_pythons
from toolbox import Skip, same


def rule__it_reads_no_more_than_the_driver_wrote(box):
    """Every variable that the driver writes ends where the program's memory ends."""
    program = [box.program("edge", "-lcuda")]
    plain, run = box.plain_sim(program), box.under(program)
    same((plain.status, plain.out), (0, "unharmed\n"), "the plain program (%s)" % plain.err)
    same((run.status, run.out), (0, "unharmed\n"), "the same under cuwhy (%s)" % run.err)


SUBINTERPRETERS = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import cudrv


def create_and_destroy():
    for _ in range(20):
        interpreters.destroy(interpreters.create())


def launch_many():
    cudrv.call("cuCtxSetCurrent", context)
    for _ in range(2000):
        cudrv.launch(nop, (1,), (1,))


create_and_destroy()    # from now on PyGILState_Check answers 1 to everybody
context = cudrv.init()
nop = cudrv.kernel("nop")
threads = [threading.Thread(target=launch_many) for _ in range(4)]
for thread in threads:
    thread.start()
create_and_destroy()
for thread in threads:
    thread.join()
cudrv.launch(nop, (1,), (4096,))
"""


def rule__sub_interpreters_neither_crash_a_program_nor_hide_its_lines(box):
    """jep, mod_wsgi and concurrent.interpreters create them; most CUDA calls come without the GIL."""
    pythons = find_pythons()
    if not pythons:
        raise Skip("no python3.9 to python3.14 here")
    argv = box.script(SUBINTERPRETERS)
    for version, python in sorted(pythons.items()):
        plain, run = box.plain_sim([python] + argv[1:]), box.under([python] + argv[1:])
        same(plain.status, 1, version + ": status of the plain program (%s)" % plain.err[-300:])
        same(run.status, 1, version + ": status")
        verdict = box.verdict(run)
        same((verdict["cause"], verdict["where"].get("line")),
             ("launch-config-block-limit", len(SUBINTERPRETERS.splitlines())), version + ": cause and line")


def awkward(box, *habit, **options):
    """The program with this habit, plain and under cuwhy."""
    driver = os.path.join(box.scratch, "libcuda.so.1")
    shutil.copy(box.library("small_driver", "-Wl,-soname,libcuda.so.1"), driver)
    argv = [box.program("awkward", "-L" + box.scratch, driver, "-lpthread")] + list(habit)
    plain = box.plain(argv, LD_LIBRARY_PATH=box.scratch)
    if plain.status == 77:
        raise Skip("this machine does not let the plain program do this")
    same((plain.status, plain.out), (0, "unharmed\n"), "the plain program (%s)" % plain.err)
    run = box.under(argv, "--no-core-dump", gpu=None, LD_LIBRARY_PATH=box.scratch, **options)
    same((run.status, run.out), (0, "unharmed\n"), "the same under cuwhy (%s)" % run.err[-500:])
    return run


def rule__a_failing_call_survives_setenv_on_another_thread(box):
    """glibc's getenv is no match for that before 2.41, and we are not the one to call it then."""
    run = awkward(box, "setenv", "5000")
    same(box.parts(run)[0]["n_failures"] > 0, True, "failures are recorded")


def rule__thousands_of_threads_have_a_record_each(box):
    run = awkward(box, "crowd", "1200")
    part = box.parts(run)[0]
    same(part["lost_threads"], 0, "threads without a record")
    assert part["n_failures"] >= 1200, "failures of %d threads only" % part["n_failures"]


def rule__a_thread_that_jumped_out_of_a_call_is_still_recorded(box):
    """siglongjmp in a handler: cysignals, SageMath and C++ timeouts leave calls that way."""
    run = awkward(box, "jump", "2000")
    same(box.parts(run)[0]["ring_launches"], 100, "launches recorded of the 100 after the jumps")


def rule__a_thread_whose_first_call_is_a_question_is_recorded_in_full(box):
    """The success of a question is not recorded, so that its wrapper does next to nothing; its failure is."""
    run = awkward(box, "ask", "100")
    part, = box.parts(run)
    same((part["n_failures"], part["ring_launches"]), (1, 100), "failures, and launches after the jump")
    with open(part["path"], "rb") as stream:
        assert b"A" * 500 in stream.read(), "what the driver said about the failure is not kept"


def rule__a_sandbox_that_kills_at_unexpected_calls_is_respected(box):
    """The program installs its filter while it is recorded; threads and a forked child use CUDA afterwards."""
    awkward(box, "sandbox", "40")
