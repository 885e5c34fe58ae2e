# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own blocks: an address is explained by the tensor it was meant for, not by the driver's segment."""
import os
import shutil
import subprocess

from toolbox import same

START = """
import cudrv, ctypes, os
torch = ctypes.CDLL(os.environ["FAKE_TORCH"])
for name in ("block_made", "block_freed"):
    getattr(torch, name).argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
for name in ("blocks_made", "blocks_freed", "block_made_old"):
    getattr(torch, name).argtypes = [ctypes.c_uint64, ctypes.c_uint64]
torch.make_block_at.argtypes = [ctypes.c_uint64]
torch.blocks_reported.restype = ctypes.c_uint64
context = cudrv.init()
segment = cudrv.alloc(20 << 20)  # <- segment
fill, store = cudrv.kernel("fill"), cudrv.kernel("oob_store")


def write(address):
    cudrv.launch(fill, (1,), (32,), cudrv.u64(address), cudrv.f32(1), cudrv.i32(32))


"""


def line_of(program, mark):
    """The line that ends in a mark, such as `# <- made`."""
    found = [n for n, line in enumerate(program.splitlines(), 1) if line.endswith("# <- " + mark)]
    same(len(found), 1, "lines marked " + mark)
    return found[0]


def under(box, program, **more):
    return box.under(box.script(program), FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"), **more)


def judged(box, program, gpu="sim:tiny", **env):
    run = under(box, program, gpu=gpu, **env)
    return run, box.verdict(run)


def line(place):
    return place and place["line"]


PAST = START + """
a, b, c = segment, segment + (1 << 20), segment + (2 << 20)
torch.block_made(a, 1 << 20, 1, 0)
torch.block_made(b, 4096, 1, 0)  # <- made
torch.block_made(c, 1 << 20, 1, 0)
write(a), write(c)
cudrv.launch(store, (1,), (32,), cudrv.u64(b), ctypes.c_int64(1 << 40))  # <- here
torch.block_freed(b, 4096, 1, 0)
torch.block_made(b, 4096, 1, 0)
cudrv.synchronize()
"""


def rule__an_overrun_names_the_tensor_that_the_kernel_was_given(box):
    """Not the segment, not the block that happens to be nearest, not the one that has taken its place since."""
    _, verdict = judged(box, PAST)
    same((verdict["cause"], verdict["certainty"], line(verdict["where"])),
         ("illegal-access-out-of-bounds", "certain", line_of(PAST, "here")), "cause")
    memory = verdict["fault"]["memory"]
    same((memory["in"], memory["parameter_byte"], memory["block"]["size"], line(memory["block"]["made"])),
         ("near", 0, 4096, line_of(PAST, "made")), "block")
    same((memory["segment"]["size"], line(memory["segment"]["made"])), (20 << 20, line_of(PAST, "segment")), "segment")
    distance = int(verdict["fault"]["address"], 16) - int(memory["block"]["address"], 16)
    same(distance, 4 << 40, "distance from the tensor")
    assert any("4.0 TiB past the end of a block of 4.0 KiB; the kernel's code computes" in why for why in verdict["why"]), verdict["why"]
    said = [e["text"] for e in verdict["evidence"] if e["source"] == "allocations"]
    same(len(said), 1, "evidence about memory")
    for words in ("a PyTorch block of 4.0 KiB", "program.py:%d;" % line_of(PAST, "made"), "4.0 TiB past its end"):
        assert words in said[0], said


READ = START + """
load = cudrv.kernel("oob_load")
out, table = segment + (8 << 20), segment
torch.block_made(table, 1 << 20, 1, 0)  # <- table
torch.block_made(out, 4096, 1, 0)
cudrv.launch(load, (1,), (32,), cudrv.u64(out), cudrv.u64(table), ctypes.c_int64(1 << 40))  # <- here
cudrv.synchronize()
"""


def rule__a_load_is_blamed_on_the_pointer_it_reads_from(box):
    """Not on the one that it writes to, which is nearer to the address, whatever the GPU's generation."""
    for gpu in ("sim:h200", "sim:rtx4090"):
        _, verdict = judged(box, READ, gpu=gpu)
        memory = verdict["fault"]["memory"]
        same((verdict["cause"], line(verdict["where"])), ("illegal-access-out-of-bounds", line_of(READ, "here")), gpu)
        same((memory["in"], memory["parameter"], memory["block"]["size"], line(memory["block"]["made"])),
             ("near", 1, 1 << 20, line_of(READ, "table")), gpu)


FREED = START + """
def step():
    x = segment + 4096
    torch.block_made(x, SIZE, 1, 0)  # <- made
    write(x)
    cudrv.synchronize()  # <- before
    torch.block_freed(x, SIZE, 1, 0)  # <- freed
    return x


kept = step()
cudrv.free(segment)  # <- emptied
cudrv.launch(fill, (1,), (32,), cudrv.u64(kept), cudrv.f32(1), cudrv.i32(32))  # <- here
cudrv.synchronize()
"""


def life_of_a_freed_tensor(box, size, last, words):
    _, verdict = judged(box, FREED.replace("SIZE", str(size)))
    same((verdict["cause"], verdict["certainty"], line(verdict["where"])),
         ("illegal-access-use-after-free", "certain", line_of(FREED, "here")), "cause")
    memory = verdict["fault"]["memory"]
    block = memory["block"]
    same((memory["in"], block["size"], line(block["made"]), line(block["freed"]), block["freed_after"]),
         ("freed", size, line_of(FREED, "made"), line_of(FREED, last), last == "before"), "block")
    same((memory["segment"]["size"], line(memory["segment"]["made"]), line(memory["segment"]["freed"])),
         (20 << 20, line_of(FREED, "segment"), line_of(FREED, "emptied")), "segment")
    said = words.split("%s")
    place = "program.py:%d" % line_of(FREED, last)
    assert any(why.startswith(said[0]) and why.endswith(place + said[1]) for why in verdict["why"]), verdict["why"]


def rule__a_freed_tensor_has_the_lines_of_its_life(box):
    life_of_a_freed_tensor(box, (1 << 20) + 512, "freed", "its tensor was released at %s")


CALLED = START + """
def step(to):
    cudrv.launch(store, (1,), (32,), cudrv.u64(to), ctypes.c_int64(1 << 40))  # <- here


def train():
    step(segment)  # <- caller


train()
cudrv.synchronize()
"""


def rule__the_line_that_called_a_helper_is_shown(box):
    _, verdict = judged(box, CALLED)
    same(line(verdict["where"]), line_of(CALLED, "here"), "where")
    said = subprocess.run([box.cuwhy, "explain", "-v", verdict["recording"]], capture_output=True, text=True, env=box.env())
    words = " ".join(said.stdout.split())
    assert "program.py:%d step(segment)" % line_of(CALLED, "caller") in words, said.stdout


def rule__of_a_small_tensor_the_line_before_its_end_is_known(box):
    """No line is looked up when one of at most 1 MiB is freed: what ran last is kept, and reported as that."""
    life_of_a_freed_tensor(box, 1 << 20, "before", "its tensor was released after %s had run")


def rule__memory_of_an_earlier_segment_is_not_taken_for_the_tensor(box):
    """The address is in a later segment at the same place; the tensor was part of the earlier one."""
    program = START + """
x = segment + 4096
torch.block_made(x, 8192, 1, 0)
torch.block_freed(x, 8192, 1, 0)
cudrv.free(segment)
again = cudrv.alloc(20 << 20)  # <- again
assert again == segment
cudrv.free(again)
write(x)
cudrv.synchronize()
"""
    _, verdict = judged(box, program)
    memory = verdict["fault"]["memory"]
    same((verdict["cause"], memory["in"], memory["block"]), ("illegal-access-use-after-free", "freed", None), "block")
    same(line(memory["segment"]["made"]), line_of(program, "again"), "segment")


OVERFLOW = START + """
big = cudrv.alloc(24 << 30)
index = cudrv.kernel("index32")
torch.block_made(big, 4 << 30, 1, 0)
torch.block_made(big + (4 << 30), 20 << 30, 1, 0)  # <- made
cudrv.launch(index, (1024,), (1024,), cudrv.u64(big + (4 << 30)), cudrv.i32(1 << 12))  # <- here
cudrv.synchronize()
"""


def rule__an_overflow_is_measured_from_the_tensor(box):
    """A wrapped index of the second tensor lies below the segment, and far below its own start."""
    _, verdict = judged(box, OVERFLOW, gpu="sim:h200")
    same((verdict["cause"], verdict["certainty"], line(verdict["where"])),
         ("illegal-access-int32-overflow", "certain", line_of(OVERFLOW, "here")), "cause")
    memory = verdict["fault"]["memory"]
    same((memory["block"]["size"], line(memory["block"]["made"])), (20 << 30, line_of(OVERFLOW, "made")), "block")


def rule__a_small_tensor_has_no_overflow(box):
    """The same distance below a tensor that no 32-bit index can leave that way."""
    program = START + """
small = cudrv.alloc(1 << 30)
torch.block_made(small, 1 << 30, 1, 0)
cudrv.launch(store, (1,), (32,), cudrv.u64(small), ctypes.c_int64(-(1 << 31)))
cudrv.synchronize()
"""
    _, verdict = judged(box, program, gpu="sim:h200")
    same((verdict["cause"], verdict["fault"]["memory"]["block"]["size"]), ("illegal-access-out-of-bounds", 1 << 30),
         "cause")


BACKWARD = START + """
def scale():
    return torch.forward()  # <- forward


node = scale()
torch.make_block_at(segment)
torch.backward(node, torch.make_block)
cudrv.launch(store, (1,), (32,), cudrv.u64(segment), ctypes.c_int64(1 << 40))
cudrv.synchronize()
"""


def rule__a_block_made_in_backward_has_its_forward_line(box):
    _, verdict = judged(box, BACKWARD)
    same(line(verdict["fault"]["memory"]["block"]["made"]), line_of(BACKWARD, "forward"), "made")


def rule__blocks_are_counted_apart_from_the_drivers_memory(box):
    run = under(box, START + """
torch.block_made(segment, 4096, 0, 0)  # of the CPU
torch.block_made(segment + 4096, 4096, 1, 0)
torch.block_made_old(segment + 8192, 4096)
torch.block_freed(segment + 4096, 4096, 1, 0)
torch.block_freed(segment + (1 << 20), 4096, 1, 0)
print(torch.blocks_reported())
""")
    same((run.status, run.out), (0, "5\n"), "the real function was called each time")
    part = box.parts(run)[0]
    same((part["n_blocks"], part["n_blocks_freed"], part["blocks"], part["lost_blocks"]), (2, 1, 1, 0), "blocks")
    same((part["live"], part["live_device_bytes"]), (1, 20 << 20), "the driver's memory")
    same(part["range_tables"], 0, "nothing failed")


def rule__pytorch_may_be_loaded_before_or_after_cuda_starts(box):
    """Found by its name when CUDA starts, or when it first reports; every report reaches the real function."""
    folder = os.path.join(box.scratch, "torch", "lib")
    os.makedirs(folder)
    library = shutil.copy(box.library("fake_torch", "-lpthread", "-fexceptions"), os.path.join(folder, "libc10.so"))
    load, init = [line for line in START.splitlines() if "CDLL" in line or "cudrv.init()" in line]
    late = START.replace(load + "\n", init + "\n" + load + "\n", 1).replace(init + "\nsegment", "segment")
    assert late.index("cudrv.init()") < late.index("CDLL"), late
    for program in (START, late):
        run = box.under(box.script(program + "torch.blocks_made(segment, 1000)\nprint(torch.blocks_reported())\n"),
                        FAKE_TORCH=library)
        same((run.status, run.out), (0, "1000\n"), "the real function")
        part = box.parts(run)[0]
        same((part["n_blocks"], part["blocks"], part["lost_blocks"]), (1000, 1000, 0), "blocks")


def rule__a_forked_child_does_not_touch_its_parents_blocks(box):
    run = under(box, START + """
torch.blocks_made(segment, 1000)
child = os.fork()
torch.blocks_made(segment + (1 << 20), 10) if child == 0 else os.waitpid(child, 0)
torch.blocks_freed(segment, 500)
if child == 0:
    os._exit(0)
""")
    same(run.status, 0, "status")
    parts = box.parts(run)
    same([(p["n_blocks"], p["n_blocks_freed"], p["blocks"]) for p in parts], [(1000, 500, 500)], "the parent's part")


def rule__a_million_live_blocks_are_exact_and_bounded(box):
    run = under(box, START + """
torch.blocks_made(1 << 40, 900000)
torch.blocks_freed(1 << 40, 450000)
torch.blocks_made(1 << 50, 300000)
""")
    same(run.status, 0, "status")
    part = box.parts(run)[0]
    same((part["n_blocks"], part["n_blocks_freed"], part["blocks"]), (1200000, 450000, 750000), "blocks")
    same((part["lost_blocks"], part["blocks_inexact_since_ns"]), (0, 0), "none is lost")
    used = os.stat(part["path"]).st_blocks * 512
    assert used <= 64 << 20, "%d bytes on disk" % used


def rule__more_blocks_than_fit_are_said_to_be_lost(box):
    run = under(box, START + "torch.blocks_made(1 << 40, 1100000)\n")
    part = box.parts(run)[0]
    same(part["n_blocks"] + part["lost_blocks"], 1100000, "all are accounted for")
    assert part["lost_blocks"] and part["blocks_inexact_since_ns"] and part["blocks"] >= 900000, part
    same((part["lost_allocations"], part["inexact_since_ns"]), (0, 0), "the driver's table")


def rule__blocks_have_room_when_threads_have_filled_the_recording(box):
    run = under(box, START + """
import threading
torch.block_made(segment, 512, 1, 0)
nop, go = cudrv.kernel("nop"), threading.Event()
def work():
    cudrv.call("cuCtxSetCurrent", context)
    cudrv.launch(nop, (1,), (1,))
    go.wait()
threads = [threading.Thread(target=work) for _ in range(120)]
for t in threads:
    t.start()
torch.blocks_made(1 << 40, 50000)
go.set()
for t in threads:
    t.join()
""")
    same(run.status, 0, "status")
    part = box.parts(run)[0]
    assert part["lost_threads"], "the threads did not fill it: %s" % part
    same((part["n_blocks"], part["blocks"], part["lost_blocks"]), (50001, 50001, 0), "blocks")
