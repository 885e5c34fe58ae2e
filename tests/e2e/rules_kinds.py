# SPDX-License-Identifier: Apache-2.0
"""What memory was used for over time: kept for every run, by epoch, and equal to the ledger at its moment."""
import json

from rules_blocks import START, under
from rules_memory import killed_after
from rules_oom import FULL, GROWTH, memory
from toolbox import same

MIB = 1 << 20
# a model, its optimizer and a few steps, with tensors allocated as in PyTorch's code; then it runs out of memory
TRAIN = START + """
import time
MIB = 1 << 20
torch.out_of_memory.argtypes = [ctypes.c_uint64, ctypes.c_int]
torch.make_blocks_of.argtypes = [ctypes.c_uint64]
torch.reserve(20 * MIB, 0)


def code_of(path, name):
    made = {}
    text = "def %s(torch, at, size):\\n    torch.block_made(at, size, 1, 0)\\n" % name
    exec(compile(text, "/venv/lib/python3.12/site-packages/torch/" + path, "exec"), made)
    return made[name]


parameter, state = code_of("nn/modules/module.py", "_apply"), code_of("optim/adamw.py", "_init_group")
gradient = torch.accumulate()
parameter(torch, segment, 3 * MIB)
torch.make_block_at(segment + 3 * MIB)
torch.make_blocks_of(3 * MIB)
for step in range(STEPS):
    for layer in range(4):
        torch.node_made(), torch.block_made(segment + (12 + layer) * MIB, MIB, 1, 0)  # <- layer
        time.sleep(PAUSE)
    torch.backward(gradient, torch.make_block)
    for layer in range(4):
        torch.block_freed(segment + (12 + layer) * MIB, MIB, 1, 0)
    if not step:
        state(torch, segment + 6 * MIB, 6 * MIB)
    if step < STEPS - 1:
        torch.block_freed(segment + 3 * MIB, 3 * MIB, 1, 0)
torch.block_made(segment + 16 * MIB, 512, 1, 0)
torch.out_of_memory(1 << 40, 0)
raise MemoryError("CUDA out of memory. Tried to allocate ...")
"""


def train(steps, pause):
    return TRAIN.replace("STEPS", str(steps)).replace("PAUSE", str(pause))


def devices(box, run, *options):
    answer = memory(box, "--json", *options, run.folder)
    same(answer.stderr, "", "stderr")
    return json.loads(answer.stdout)["devices"]


def columns(device):
    """The columns of a device, checked: times rise, and every list has a value for each."""
    kinds = device["kinds_over_time"]
    assert kinds, "no kinds over time"
    n = len(kinds["us"])
    rows = dict(kinds["tensors"], untold=kinds["untold"], cache=kinds["cache"], other_libraries=kinds["other_libraries"])
    same([name for name, row in rows.items() if len(row) != n or min(row) < 0], [], "rows of another length")
    assert kinds["us"] == sorted(kinds["us"]) and 2 <= n <= 127, kinds["us"]
    assert all(b <= a for b, a in zip(kinds["us"], kinds["at_us"])), kinds
    return [{name: row[i] for name, row in rows.items()} for i in range(n)], kinds["ledger"]


def tensors(column):
    return sum(n for name, n in column.items() if name not in ("cache", "other_libraries"))


def begun(list_of):
    """The columns from the first tensor on: on a loaded machine an epoch may pass before the program allocates it."""
    first = next(i for i, column in enumerate(list_of) if tensors(column))
    return list_of[first:]


def is_ledger(column, device):
    """A kind that never occurred has no row."""
    told = {name: n for name, n in column.items() if name in device["kinds"] and n}
    same(told, {name: n for name, n in device["kinds"].items() if n}, "kinds at the moment of the ledger")
    cache = device["parts"]["cache_in_used_segments"] + device["parts"]["cache_free_segments"]
    same((column["untold"], column["cache"]), (0, cache), "what has no kind, and the cache")


def rule__kinds_over_time_of_a_training_run(box):
    run = under(box, train(12, 0.002))
    same(run.status, 1, "status")
    device = devices(box, run, "--at", "oom")[0]
    list_of, at = columns(device)
    same(at, len(list_of) - 1, "the ledger's column is the last one")
    is_ledger(list_of[at], device)
    for column in begun(list_of):
        same(column["untold"], 0, "tensors without a kind")
        same(column["parameters"], 3 * MIB, "parameters")
        assert column["optimizer"] in (0, 6 * MIB) and column.get("gradients", 0) in (0, 3 * MIB), column
        assert column["activations"] in [n * MIB for n in range(5)], column
        same(tensors(column) + column["cache"], 20 * MIB, "tensors and cache are what PyTorch had reserved")
    # an epoch's moment is its peak: in the middle of the run all layers are live
    assert max(c["activations"] for c in list_of) == 4 * MIB, list_of
    assert max(tensors(c) for c in list_of) == device["peak_allocated"], list_of


def rule__kinds_over_time_of_growth_and_without_an_oom(box):
    for program, at in ((GROWTH, "oom"), (FULL + "import time\nfor step in range(30):\n    torch.block_made(made(each), each, 1, 0)\n    time.sleep(0.001)\n", "end")):
        run = under(box, program)
        device = devices(box, run, "--at", at)[0]
        list_of, ledger = columns(device)
        is_ledger(list_of[ledger], device)
        grows = [tensors(c) for c in list_of]
        same(grows, sorted(grows), "what a program that only grows holds")
        same(grows[-1], device["allocated"], "at the end")


def rule__kinds_over_time_of_more_epochs_than_there_is_room_for(box):
    run = under(box, train(300, 0.0006))
    device = devices(box, run, "--at", "oom")[0]
    list_of, at = columns(device)
    is_ledger(list_of[at], device)
    same({c["parameters"] for c in begun(list_of)}, {3 * MIB}, "parameters")
    same([c for c in begun(list_of) if tensors(c) + c["cache"] != 20 * MIB or c["untold"]], [], "columns that do not add up")
    same(max(tensors(c) for c in list_of), device["peak_allocated"], "the peak")


def rule__kinds_over_time_survive_a_kill(box):
    for milliseconds in (3, 11, 47, 230):
        for device in devices(box, killed_after(box, milliseconds / 1e3), "--at", "end"):
            list_of, at = columns(device)
            same(at, len(list_of) - 1, "the ledger's column is the last one")
            # one event may be in some places and not yet in others; a history that was being changed is left out
            assert all(tensors(c) <= 1001 * 512 for c in list_of), list_of
            assert sum(c["untold"] for c in list_of[:-2]) <= 512 * len(list_of), list_of


def rule__a_forked_child_has_epochs_of_its_own(box):
    run = under(box, START + """
import time
for step in range(10):
    torch.block_made(segment + step * 4096, 4096, 1, 0)
    time.sleep(0.002)
child = os.fork()
try:
    cudrv.mem_info()    # what it says does not matter: the child's recording begins
except Exception:
    pass
for step in range(10):
    torch.block_made((1 << 40) + step * 4096, 512 if child else 1024, 1, 0)
    time.sleep(0.002)
if child:
    os.waitpid(child, 0)
os._exit(0)
""")
    same(run.status, 0, "status")
    found = devices(box, run, "--at", "end")
    same(len(found), 2, "processes with memory")
    for device in found:
        list_of, at = columns(device)
        same(tensors(list_of[at]), device["allocated"], "at the end")
        held = [tensors(c) for c in list_of]
        same(held, sorted(held), "what a program that only grows holds")
