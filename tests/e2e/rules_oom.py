# SPDX-License-Identifier: Apache-2.0
"""Why memory ran out, and who held it, with a stand-in for PyTorch; and `cuwhy memory` of what was recorded."""
import json
import os
import shutil
import subprocess

from rules_blocks import START, line_of, under
from toolbox import same

MIB = 1 << 20
# almost the whole card is one segment of PyTorch's
FULL = START + """
MIB = 1 << 20
torch.out_of_memory.argtypes = [ctypes.c_uint64, ctypes.c_int]
free, total = cudrv.mem_info()
cudrv.free(segment)
size = (free + (20 << 20)) // (2 * MIB) * (2 * MIB) - 4 * MIB
segment = cudrv.alloc(size)
torch.reserve(size, 0)
each, at = size // 40 // 512 * 512, segment


def made(bytes):
    global at
    at += bytes
    return at - bytes


def give_up():
    torch.out_of_memory(each * 20, 0)  # <- oom
    raise MemoryError("CUDA out of memory. Tried to allocate ...")


"""
GROWTH = FULL + """
for step in range(36):
    torch.block_made(at, each, 1, 0)
    torch.block_freed(at, each, 1, 0)
    torch.block_made(made(each), each, 1, 0)  # <- kept
give_up()
"""
FILLED = FULL + """
while at + each <= segment + size:
    torch.block_made(made(each), each, 1, 0)  # <- kept
give_up()
"""
EVAL = FULL + """
def forward():
    for part in (1, 2):
        torch.node_made(), torch.block_made(made(each), each, 1, 0)  # <- layer
    torch.node_made(), torch.block_made(made(each), each, 1, 0)  # <- head


while at + 3 * each <= segment + size:
    forward()
give_up()
"""


PIECES = START + """
MIB, held = 1 << 20, 0
torch.out_of_memory.argtypes = [ctypes.c_uint64, ctypes.c_int]
cudrv.free(segment)
while cudrv.mem_info()[0] >= 6 * MIB:
    segment, held = cudrv.alloc(4 * MIB), held + 4 * MIB
    torch.block_made(segment + 2 * MIB, 4096, 1, 0)  # <- kept
torch.reserve(held, 0)
torch.out_of_memory(8 * MIB, 0)
raise MemoryError("CUDA out of memory. Tried to allocate ...")
"""


def judged(box, program):
    run = under(box, program)
    same(run.status, 1, "status (%s)" % run.err[-300:])
    return run, box.verdict(run)


def adds_up(ledger):
    same(sum(ledger["parts"].values()), ledger["total"], "the parts of the card")
    same(sum(ledger["kinds"].values()), ledger["parts"]["tensors"], "the kinds of tensors")


def top_line(ledger):
    return [line["line"] for line in ledger["lines"] if line["line"]][0]


def rule__a_line_that_never_lets_go_is_growth(box):
    _, verdict = judged(box, GROWTH)
    same((verdict["cause"], verdict["certainty"]), ("oom-growth", "likely"), "cause: the loop is over when memory runs out")
    ledger = verdict["memory"]["ledger"]
    adds_up(ledger)
    same(top_line(ledger), line_of(GROWTH, "kept"), "the biggest line")
    assert any(":%d " % line_of(GROWTH, "kept") in why for why in verdict["why"]), verdict["why"]


def rule__a_card_that_is_only_filled_is_capacity(box):
    _, verdict = judged(box, FILLED)
    same(verdict["cause"], "oom-capacity", "cause")
    adds_up(verdict["memory"]["ledger"])


def rule__passes_whose_nodes_never_run_are_evaluation(box):
    _, verdict = judged(box, EVAL)
    same((verdict["cause"], verdict["certainty"]), ("oom-eval-without-no-grad", "likely"), "cause")
    ledger = verdict["memory"]["ledger"]
    adds_up(ledger)
    same(ledger["kinds"]["activations"], ledger["parts"]["tensors"], "all of it are activations")
    assert any(":%d" % line_of(EVAL, "head") in why for why in verdict["why"]), verdict["why"]


TWICE = START + """


def ask(size):
    return cudrv.alloc(size)  # <- asks


held, total = [], cudrv.mem_info()[1]
for size in (2 * total, total // 4, total // 2):
    try:
        held.append(ask(size))
    except cudrv.CudaError:
        if held:
            raise
"""


def rule__what_counts_is_the_last_time_that_memory_ran_out(box):
    """On the same line it ran out before, of another request, and that was handled."""
    run = under(box, TWICE)
    same(run.status, 1, "status (%s)" % run.err[-300:])
    verdict = box.verdict(run)
    memory = verdict["memory"]
    same((memory["request"], verdict["cause"]), (memory["total"] // 2, "oom-capacity"), "the request")
    assert memory["free"] < memory["total"] // 2, memory


def rule__small_tensors_that_keep_segments_are_fragmentation(box):
    folder = os.path.join(box.scratch, "lib")
    os.makedirs(folder)
    library = shutil.copy(box.library("fake_torch", "-lpthread", "-fexceptions"), os.path.join(folder, "libc10.so"))
    for conf in ("", "expandable_segments:True"):
        run = box.under(box.script(PIECES), FAKE_TORCH=library, PYTORCH_CUDA_ALLOC_CONF=conf)
        same(run.status, 1, "status (%s)" % run.err[-300:])
        verdict = box.verdict(run)
        same((verdict["cause"], verdict["certainty"]), ("oom-fragmentation", "certain"), "cause")
        assert verdict["memory"]["would_fit"]["without_gaps"] >= 0, verdict["memory"]["would_fit"]
        segments = verdict["memory"]["ledger"]["segments"]
        same((segments["largest_free_block"], segments["in_use"]), (2 * MIB, segments["count"]), "segments")
        same(segments["kept_by"][0]["line"], line_of(PIECES, "kept"), "who keeps them")
        adds_up(verdict["memory"]["ledger"])
        advised = any("expandable_segments:True" in (fix["command"] or "") for fix in verdict["fix"])
        same(advised, not conf, "a setting that is on is not advised")


WORKSPACE = START + """
for f in (torch.workspace, torch.product, torch.out_of_memory):
    f.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
torch.block_made(segment, 1 << 20, 1, 0)
torch.block_made(segment + (1 << 20), 1 << 20, 1, 0)
assert torch.workspace(segment, 1 << 20) == 0 and torch.workspace(segment, 0) == 7
for _ in range(2):  # told of again, and a new one at the same place
    assert torch.workspace(segment, 1 << 20) == 0
    torch.block_freed(segment, 1 << 20, 1, 0)
    torch.block_made(segment, 1 << 20, 1, 0)
assert torch.workspace(segment, 1 << 20) == 0
torch.block_freed(segment + (1 << 20), 1 << 20, 1, 0)
torch.block_made(segment + (1 << 20), 2 << 20, 1, 0)
torch.block_made(segment + (4 << 20), 4 << 20, 1, 0)
assert torch.product(segment + (4 << 20), 4 << 20) == 0
torch.out_of_memory(1 << 40, 0)
%s
raise MemoryError("CUDA out of memory. Tried to allocate ...")
"""


def rule__a_workspace_of_cublas_is_no_tensor_of_the_line_that_needed_it(box):
    for end in ("", "torch.block_freed(segment, 1 << 20, 1, 0)"):    # before the program ends
        _, verdict = judged(box, WORKSPACE % end)
        kinds = verdict["memory"]["ledger"]["kinds"]
        same((kinds["workspaces"], kinds["other"]), (5 << 20, 2 << 20), "workspaces and other tensors")


def memory(box, *arguments):
    return subprocess.run([box.cuwhy, "memory"] + list(arguments), capture_output=True, text=True, env=box.env())


def rule__cuwhy_memory_shows_the_ledger_of_a_recording(box):
    run, _ = judged(box, GROWTH)
    shown = memory(box, run.folder)
    same((shown.returncode, shown.stderr), (1, ""), "status and stderr")
    for words in ("(oom-growth)", "when memory ran out", "the whole card", "by line", ":%d" % line_of(GROWTH, "kept")):
        assert words in shown.stdout, (words, shown.stdout)
    for at in ("oom", "peak", "end"):
        answer = memory(box, "--json", "--at", at, run.folder)
        same(answer.returncode, 1, "status")
        devices = json.loads(answer.stdout)["devices"]
        same([(d["at"], d["device"]) for d in devices], [(at, 0)], "moment and device")
        adds_up(devices[0])
        same(top_line(devices[0]), line_of(GROWTH, "kept"), "the biggest line " + at)
    assert "other tensors" in memory(box, "--by", "kind", run.folder).stdout
    assert "PyTorch's tensors" in memory(box, "--by", "library", run.folder).stdout
    assert "by function" in memory(box, "--by", "function", run.folder).stdout


def rule__cuwhy_memory_refuses_what_it_does_not_know(box):
    for arguments in (("--by", "color", "."), ("--at", "noon", "."), ("--top", "x", "."), ("--by", "kind"),
                      ("no/such/recording",), (".", ".")):
        answer = memory(box, *arguments)
        same(answer.returncode, 2, "status of %s" % " ".join(arguments))
        failure = json.loads(memory(box, "--json", *arguments).stdout)["failure"]
        assert failure["message"], failure
