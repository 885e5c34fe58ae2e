# SPDX-License-Identifier: Apache-2.0
"""What the driver and the kernels print is part of the recording, and nobody notices that it is taken."""
import os
import signal

from rules_asserts import GATHER, INDEX, NLL, OWN, WITHOUT_A_DUMP, program
from toolbox import each, same

NAMES = ("fprintf __fprintf_chk vfprintf __vfprintf_chk dprintf __dprintf_chk vdprintf __vdprintf_chk fputs fputs_unlocked fwrite fwrite_unlocked "
         "fputc fputc_unlocked putc putc_unlocked _IO_putc write writev pointer write_all "
         "printf __printf_chk vprintf __vprintf_chk puts putchar putchar_unlocked pieces").split()
LINKED = {"lazy": "-Wl,-z,lazy,-z,norelro", "usual": "-Wl,-z,lazy,-z,relro", "now": "-Wl,-z,now,-z,relro"}
TALK = """
import ctypes, os, sys, threading
%s
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
for way in map(int, sys.argv[1].split(",")):
    assert cuda.cuStreamSynchronize(ctypes.c_void_p(way)) == 0
"""


def talk(box, ways, linked="usual", before=""):
    """A program whose driver prints in these ways, plain and under cuwhy."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "talking_driver.c")
    made = box.builder.compile(here, "talking-%s.so" % linked, ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", LINKED[linked]])
    os.makedirs(os.path.join(box.scratch, linked), exist_ok=True)
    driver = os.path.join(box.scratch, linked, "libcuda.so.1")
    if not os.path.exists(driver):
        os.symlink(made, driver)
    argv = box.script(TALK % before) + [",".join(str(NAMES.index(way)) for way in ways)]
    plain = box.plain(argv, LD_LIBRARY_PATH=os.path.dirname(driver))
    return plain, box.under(argv, "--no-core-dump", gpu=None, LD_LIBRARY_PATH=os.path.dirname(driver))


def said(run):
    """What the program wrote and how it ended; not what cuwhy says at the end."""
    return run.status, run.out, "".join(line for line in run.err.splitlines(True) if not line.startswith('{"schema"'))


def printed(box, run, kind):
    """Lines of one kind in the recording: times, descriptor, block, thread, the line."""
    return [tuple(line.split(" ", 5)[1:]) for line in box.peek(run, "printed") if line.split(" ", 1)[0] == kind]


def line_of(way):
    return "/src/Index.cu:94: %s: block: [7,0,0], thread: [0,0,0] Assertion `x < n` failed." % way


@each(sorted(LINKED))
def rule__whichever_function_of_libc_the_driver_prints_with_its_words_are_kept(box, linked):
    for first in range(0, len(NAMES), 7):
        ways = NAMES[first:first + 7]
        plain, run = talk(box, ways, linked)
        same(said(run), said(plain), "the program, and what its driver was told")
        same(plain.status, 0, plain.err)
        out = NAMES.index("printf"), NAMES.index("putchar_unlocked")
        same(printed(box, run, "assertion"),
             [("3", "1" if out[0] <= NAMES.index(way) <= out[1] else "2", "[7,0,0]", "[0,0,0]", line_of(way)) for way in ways], "kept")


FULL = """
import fcntl
ends = os.pipe()
os.dup2(ends[1], 2)
fcntl.fcntl(2, fcntl.F_SETFL, os.O_NONBLOCK | fcntl.fcntl(2, fcntl.F_GETFL))
try:
    while os.write(2, b"x" * 4096):
        pass
except BlockingIOError:
    pass
def drain():
    while os.read(ends[0], 4096):
        pass
"""


def rule__what_is_written_again_counts_once(box):
    """A full pipe: the driver tries until there is room."""
    _, run = talk(box, ["write_all"], before=FULL + "threading.Timer(0.3, drain).start()\nthreading.Timer(1, os._exit, [0]).start()\n")
    same(printed(box, run, "assertion"), [("3", "2", "[7,0,0]", "[0,0,0]", line_of("write_all"))], "kept")


def rule__words_are_kept_that_nobody_got(box):
    plain, run = talk(box, ["fprintf", "write", "writev", "dprintf"], before=FULL)
    same(said(run), said(plain), "the program, and what its driver was told")
    assert " 11\n" in plain.out, plain.out
    same(len(printed(box, run, "assertion")), 4, "kept")


def rule__a_pipe_that_nobody_reads_ends_the_program_as_ever_and_the_words_are_kept(box):
    before = "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nends = os.pipe()\nos.dup2(ends[1], 2)\nos.close(ends[0])\nos.close(ends[1])\n"
    for way in ("fprintf", "write"):
        plain, run = talk(box, [way], before=before)
        same((plain.status, run.status), (128 + signal.SIGPIPE, 128 + signal.SIGPIPE), way)
        same(printed(box, run, "assertion"), [("1", "2", "[7,0,0]", "[0,0,0]", line_of(way))], way)


def rule__the_words_of_the_program_are_not_the_drivers(box):
    """Not even from the same function of libc, nor from a child."""
    before = """
libc = ctypes.CDLL(None)
said = b"/src/Other.cu:1: mine: block: [1,0,0], thread: [2,0,0] Assertion `mine` failed.\\n"
def mine():
    os.write(2, said)
    libc.fputs(said, ctypes.c_void_p.in_dll(libc, "stderr"))
import atexit
atexit.register(mine)
mine()
"""
    plain, run = talk(box, ["fputs"], before=before)
    same(said(run), said(plain), "the program")
    same(run.err.count("mine: block"), 4, "lines of its own")
    same([line[-1] for line in printed(box, run, "assertion")], [line_of("fputs")], "kept")


def rule__a_forked_child_leaves_the_words_of_its_parent_alone(box):
    after = """
import cudrv
cudrv.init()
bad = cudrv.asserting(%r, %r)
cudrv.launch(bad, (1,), (4,))
try:
    cudrv.synchronize()
except cudrv.CudaError:
    pass
import os
pid = os.fork()
if not pid:
    os.write(2, b"/src/Other.cu:1: mine: block: [1,0,0], thread: [2,0,0] Assertion `mine` failed.\\n")
    try:
        cudrv.init()
    except cudrv.CudaError:
        pass
    os._exit(0)
os.waitpid(pid, 0)
cudrv.synchronize()
""" % (OWN[0], "%s:%d: %s: %s" % OWN[1:])
    run = box.under(box.script(after), "--no-core-dump")
    same([line[0] for line in printed(box, run, "assertion")], ["4"], "threads, all of the parent's kernel")
    same(box.verdict(run)["fault"]["assert"]["condition"], OWN[4], "condition")


SAYS = """
import ctypes, cudrv
cudrv.init()
say = cudrv.kernel("say")
for number in range(%d):
    cudrv.launch(say, (10,), (10,), ctypes.c_int(number))
cudrv.synchronize()
"""


def rule__what_kernels_print_is_kept_within_bounds_and_arrives_as_ever(box):
    argv = box.script(SAYS % 5)
    plain, run = box.plain_sim(argv), box.under(argv)
    same(said(run), said(plain), "the program")
    same(plain.out.count("\n"), 500, "lines")
    same(printed(box, run, "other"), [("1", "1", "[0,0,0]", "[0,0,0]", "thread %d was given 0" % i) for i in range(8)], "kept")
    same([line for line in box.peek(run, "printed") if line.startswith("lost")], ["lost 492"], "counted")
    argv = box.script(SAYS % 50 + "bad = cudrv.asserting(%r, %r)\ncudrv.launch(bad, (1,), (4,))\ncudrv.synchronize()\n" % (OWN[0], "%s:%d: %s: %s" % OWN[1:]))
    plain, run = box.plain_sim(argv), box.under(argv, "--no-core-dump")
    same(run.out, plain.out, "output of a kernel that prints a lot")
    same([line for line in box.peek(run, "printed") if line.startswith("lost")], ["lost 1000"], "counted, to some number")
    same(box.verdict(run)["fault"]["assert"]["condition"], OWN[4], "an assertion is heard after that")


CROWD = """
import ctypes
import cudrv
cudrv.init()
nop, hold = cudrv.kernel("nop"), cudrv.kernel("spin")
others = [cudrv.asserting(name, "/somewhere/x.cu:1: operator(): x > 0") for name in %r]
bad = cudrv.asserting(%r, %r)
cudrv.launch(hold, (1,), (1,), ctypes.c_int(500))
for _ in range(50):
    cudrv.launch(nop, (1,), (1,))
cudrv.launch(bad, (2,), (64,))
for other in others:
    cudrv.launch(other, (1,), (1,))
for _ in range(50):
    cudrv.launch(nop, (1,), (1,))
cudrv.synchronize()
"""
CROWD_LINE = 11
COMPILED = "_ZN2at6native%d_GLOBAL__N__5cd812b1_%s_5b0651e1%s"      # as nvcc names what is in an anonymous namespace
LOSS = COMPILED % (39, "7_Loss_cu", "38nll_loss_forward_reduce_cuda_kernel_2dEv")
LOSS_2D = COMPILED % (45, "12_NLLLoss2d_cu", "25nll_loss2d_forward_kernelEv")
SCATTER = "_ZN2at6native34_scatter_gather_elementwise_kernelEv"
CROWDED = {"index": INDEX, "gather": GATHER, "loss": (LOSS,) + NLL[1:], "loss-2d": (LOSS_2D, NLL[1].replace("Loss", "NLLLoss2d")) + NLL[2:],
           "inlined": (LOSS, NLL[1], 7, "check_label", "t >= 0 && t < n_classes"), "own": OWN,
           "scatter": (SCATTER, GATHER[1].replace("IndexKernelUtils", "ScatterGatherKernel"), 144, "operator()", 'idx >= 0 && "index out of bounds"')}


def crowd(kernel, others):
    return CROWD % (others, kernel[0], "%s:%d: %s: %s" % kernel[1:])


@each(sorted(CROWDED))
def rule__without_a_dump_the_line_of_the_printed_assertion_is_named_among_a_hundred(box, which):
    bad = CROWDED[which]
    others = sorted({kernel[0] for kernel in CROWDED.values()} - {bad[0]})
    run = box.under(box.script(crowd(bad, others)), "--no-core-dump")
    verdict = box.verdict(run)
    same((verdict["where"]["line"], verdict["suspects"]), (CROWD_LINE, verdict["suspects"][:1]), "line, and no other suspect")
    same(verdict["fault"]["assert"]["condition"], bad[4], "condition")
    same((verdict["fault"]["block"], verdict["fault"]["thread"], verdict["fault"]["threads"]), ([0, 0, 0], [0, 0, 0], 32), "who")


def rule__a_line_that_fits_no_kernel_better_than_another_clears_none(box):
    """A header's assertion can be in any kernel."""
    bad = (INDEX[0], "/pytorch/c10/core/DynamicCast.h", 83, "fetch_and_cast", "false")
    verdict = box.verdict(box.under(box.script(crowd(bad, [LOSS, GATHER[0]])), "--no-core-dump"))
    same([verdict["error"]["code"], verdict["fault"]["assert"]["file"]], [710, bad[1]], "error and file")
    same(sorted(s["line"] for s in verdict["suspects"]), [8, 10, 11, 13, 15], "lines of suspects")


def rule__a_line_of_python_names_the_triton_kernel_that_has_it(box):
    path = os.path.join(box.scratch, "kernels.py")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("@triton.jit\ndef first(x):\n    pass\n\n\n@triton.jit\ndef second(x, n):\n    at = tl.load(x)\n    tl.device_assert(at < n)\n")
    bad = ("second", path, 9, "unknown", "at < n")
    verdict = box.verdict(box.under(box.script(crowd(bad, ["first", INDEX[0]])), "--no-core-dump"))
    same((verdict["where"].get("line"), verdict["cause"]), (CROWD_LINE, "kernel-assert"), "line")


def rule__where_the_words_cannot_be_taken_the_kernels_still_tell(box):
    """A driver that writes by a system call of its own."""
    for kernel, call, function, cause in WITHOUT_A_DUMP:
        run = box.under(box.script(program(kernel, call, function)), "--no-core-dump", gpu="sim:tiny,own_words")
        verdict = box.verdict(run)
        same((verdict["cause"], verdict["certainty"], verdict["fault"]), (cause, "likely", None), kernel[0])
        same(printed(box, run, "assertion"), [], "kept")


PLACES = {"closed": "os.close(2)", "null": "os.dup2(os.open('/dev/null', os.O_WRONLY), 2)",
          "file": "os.dup2(os.open(%r, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)", "pipe": "ends = os.pipe()\nos.dup2(ends[1], 2)", "full": FULL,
          "terminal": "ends = os.openpty()\nos.dup2(ends[1], 2)"}
STAYS = """
import fcntl, os
%s
def standard():
    told = []
    for fd in (0, 1, 2):
        try:
            st = os.fstat(fd)
            told.append((st.st_dev, st.st_ino, st.st_rdev, fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD), os.isatty(fd)))
        except OSError as error:
            told.append(error.errno)
    return told, sorted(os.listdir("/proc/self/fd"))
import cudrv
before = standard()
cudrv.init()
bad = cudrv.asserting(%r, %r)
cudrv.launch(bad, (2,), (64,))
try:
    cudrv.synchronize()
except cudrv.CudaError:
    pass
print("same" if standard()[0] == before[0] else (before, standard()))
cudrv.synchronize()
"""


@each(sorted(PLACES))
def rule__descriptors_stay_what_they_are_wherever_they_lead(box, place):
    path = os.path.join(box.scratch, "stderr")
    setup = PLACES[place] % path if "%r" in PLACES[place] else PLACES[place]
    argv = box.script(STAYS % (setup, INDEX[0], "%s:%d: %s: %s" % INDEX[1:]))
    run = box.under(argv, "--no-core-dump")
    same((run.status, run.out), (1, "same\n"), "the program (%s)" % run.err)
    same(printed(box, run, "assertion"), [("32", "2", "[0,0,0]", "[0,0,0]", "%s:%d: %s: block: [0,0,0], thread: [0,0,0] Assertion `%s` failed." % INDEX[1:])], "kept")
    same(box.verdict(run)["fault"]["assert"]["condition"], INDEX[4], "condition")
    if place == "file":
        with open(path, encoding="utf-8") as stream:
            same(stream.read().count("Assertion `"), 32, "lines in the file")
