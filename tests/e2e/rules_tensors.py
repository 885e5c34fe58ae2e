# SPDX-License-Identifier: Apache-2.0
"""The tensors of the failing function: names, types and shapes, on every Python. PyTorch's classes have stand-ins; the real ones are in tests/torch/cases."""
import os

from rules_recorder import find_pythons
from toolbox import HERE, Skip, same

START = """
import ctypes, os, sys
sys.path.insert(0, os.environ["CUDRV"])
import cudrv
torch = ctypes.CDLL(os.path.join(os.environ["LIB"], "libtorch_cpu.so"))
Base = type("torch._C.TensorBase", (), {})
class Tensor(Base):
    def __init__(self, *shape): self.shape, self.dtype, self.device = shape, "torch.float32", "cuda:0"
class Parameter(Tensor): pass
class Derived(Tensor): pass
cudrv.init()
def step(x, batch):
    y = Parameter(2, 3)
    other, several = Derived(7), [Tensor(), 3, Tensor(5)]
    if len(sys.argv) > 1: torch.set_mode(1)
    try:
        cudrv.alloc(1 << 60) # failed
    except RuntimeError as error:
        raise RuntimeError("CUDA out of memory: " + str(error))
"""
CALL = """
step(Tensor(8, 1 << 40), {"labels": Tensor(8), "not a name": Tensor(9), 3: Tensor(1)})
"""
ALL = ['x [8, 1099511627776]', 'batch["labels"] [8]', "y [2, 3]", "several[0] []", "several[2] [5]"]


def library(box):
    folder = os.path.join(box.scratch, "torch")
    os.makedirs(folder, exist_ok=True)
    made = box.builder.compile(os.path.join(HERE, "programs", "torch_mode.c"), "torch_mode.so", ["-shared", "-fPIC"])
    if not os.path.exists(os.path.join(folder, "libtorch_cpu.so")):
        os.link(made, os.path.join(folder, "libtorch_cpu.so"))
    return folder


def told(box, text, *words, python=None):
    script = box.script(START + text)
    script[0] = python or script[0]
    run = box.under(script + list(words), LIB=library(box), CUDRV=os.path.join(HERE, "site-packages"))
    verdict = box.verdict(run)
    same(run.status, 1, run.err[-2000:])
    return run, verdict, ["%s %s" % (t["name"], t["shape"]) for t in verdict.get("tensors", ())]


def rule__tensors_of_the_failing_function_are_told(box):
    pythons = find_pythons()
    if not pythons:
        raise Skip("no python3.9 to python3.14 here")
    for version, python in sorted(pythons.items()):
        run, verdict, tensors = told(box.fresh(), CALL, python=python)
        same((verdict["where"]["function"], tensors), ("step", ALL), "%s: %s" % (version, run.err[-1500:]))
        same({(t["dtype"], t["device"]) for t in verdict["tensors"]}, {("float32", "cuda:0")}, version)


def rule__tensors_at_the_top_of_a_program_are_told(box):
    _, _, tensors = told(box, """
a, b = Tensor(1), (Tensor(2), None)
cudrv.alloc(1 << 60)
""")
    same(tensors, ["a [1]", "b[0] [2]"], "tensors")


def rule__nothing_is_asked_under_a_mode(box):
    _, _, tensors = told(box, CALL, "mode")
    same(tensors, [], "tensors")


def rule__a_handled_failure_has_no_tensors(box):
    """They are read when an exception ends the program: then the frame is another one."""
    _, verdict, tensors = told(box, """
try:
    step(Tensor(8), {})
except RuntimeError:
    pass
z = Tensor(4)
cudrv.alloc(1 << 61)
""")
    same((tensors, verdict["where"]["function"]), (["z [4]"], "<module>"), "tensors")
    for note in verdict["notes"]:
        same(note.get("tensors"), None, "tensors of a note")


def rule__only_the_frame_of_the_function_counts(box):
    """The failing function has no tensors; its caller's are not its own."""
    _, _, tensors = told(box, """
def inner(n):
    cudrv.alloc(n)
def outer(x):
    inner(1 << 60)
outer(Tensor(3))
""")
    same(tensors, [], "tensors")


def rule__of_a_late_failure_the_function_that_still_runs_is_asked(box):
    late = """
trap = cudrv.kernel("assert_fail")
def train(x):
    cudrv.launch(trap, (1,), (1,)) # bad
    y = Tensor(6)
    cudrv.synchronize()
"""
    _, verdict, tensors = told(box, late + "train(Tensor(3))\n")
    same((tensors, verdict["tensors_late"], verdict["where"]["function"]), (["x [3]", "y [6]"], True, "train"), "tensors")
    text = box.plain([box.cuwhy, "explain", "-v", verdict["recording"]]).out
    assert "tensors in train() when it was noticed: x float32 [3], y float32 [6]" in " ".join(text.split()), text
    _, verdict, tensors = told(box.fresh(), late.replace("    cudrv.synchronize()", "") + "train(Tensor(3))\nz = Tensor(1)\ncudrv.synchronize()\n")
    same((tensors, verdict["where"]["function"]), ([], "train"), "tensors of a function that has ended")
