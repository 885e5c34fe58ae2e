# SPDX-License-Identifier: Apache-2.0
"""Memory over the whole run: by line, in total, at the peak; exact whenever the program ends."""
import glob
import json
import mmap
import os
import shutil

from rules_blocks import START, under
from toolbox import Skip, same

MANY = START + """
import random
random.seed(%d)


def make_here(a, n): torch.block_made(a, n, 1, 0)


def make_there(a, n): torch.block_made(a, n, 1, 0)


live, total, peak, number = {}, 0, 0, 0
torch.reserve(20 << 20, 0)
for step in range(3000):
    if not live or random.random() < (0.7 if step %% 1000 < 400 else 0.4):
        address, size, number = segment + number * 512, 512 * random.randint(1, 8), number + 8
        live[address] = size
        total += size
        peak = max(total, peak)
        random.choice((make_here, make_there))(address, size)
    else:
        address = random.choice(list(live))
        total -= live[address]
        torch.block_freed(address, live.pop(address), 1, 0)
print(total, peak, len(live))
"""


def rule__sites_add_up_to_what_pytorch_says(box):
    for seed in range(3):
        run = under(box, MANY % seed)
        same(run.status, 0, "status")
        total, peak, number = map(int, run.out.split())
        part = box.parts(run)[0]
        same((part["memory[0].allocated"], part["memory[0].peak_allocated"]), (total, peak), "totals")
        same((part["site_live"], part["site_count"], part["site_at_peak"]), (total, number, peak), "sites")
        same((part["memory[0].reserved"], part["memory[0].peak_reserved"]), (20 << 20, 20 << 20), "reserved")
        same((part["sites"], part["lost_sites"]), (3, 0), "two lines made tensors, one the segment")
        same((part["site_driver_live"], part["memory[0].driver"]), (20 << 20, 20 << 20), "the driver's")
        assert part["samples"] >= 1, part


def rule__a_segment_belongs_to_the_library_that_asked_the_runtime(box):
    """PyTorch reports nothing when it empties its cache; we know that its segments are gone because we know who allocated them."""
    folder = os.path.join(box.scratch, "lib")
    os.makedirs(folder)
    runtime = box.library("fake_cudart", "-Wl,-soname,libcudart.so.12")
    shutil.copy(runtime, os.path.join(folder, "libcudart.so.12"))
    library = box.library("fake_segments", "-L" + folder, "-l:libcudart.so.12", "-Wl,-rpath," + folder)
    library = shutil.copy(library, os.path.join(folder, "libc10_cuda.so"))
    program = START + """
c10 = ctypes.CDLL(os.environ["FAKE_C10"])
c10.segment_made.restype, c10.segment_made.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
torch.reserve(2 << 20, 0)
first = c10.segment_made(2 << 20)
torch.block_made(first, 512, 1, 0)
torch.block_freed(first, 512, 1, 0)
print(first != 0)
"""
    run = under(box, program, FAKE_C10=library)
    same((run.status, run.out), (0, "True\n"), "status")
    same(box.parts(run)[0]["memory[0].reserved"], 2 << 20, "before")
    run = under(box, program + "cudrv.free(first)\n", FAKE_C10=library)
    part = box.parts(run)[0]
    same((part["memory[0].reserved"], part["memory[0].peak_reserved"]), (0, 2 << 20), "after empty_cache()")
    same((part["memory[0].driver"], part["memory[0].driver_peak"]), (20 << 20, 22 << 20), "the driver's")


def rule__backward_gradients_and_graphs_have_sites_of_their_own(box):
    run = under(box, START + """
node, kept = torch.forward(), torch.forward()
gradient = torch.accumulate()
torch.make_block_at(segment)
torch.backward(node, torch.make_block)
torch.make_block_at(segment + 512)
torch.backward(gradient, torch.make_block)
torch.backward(node, torch.make_block)
stream = cudrv.stream()
cudrv.begin_capture(stream)
torch.block_made(segment + 1024, 512, 1, 0)
cudrv.end_capture(stream)
""")
    same(run.status, 0, "status")
    part = box.parts(run)[0]
    same((part["n_nodes"], part["n_nodes_run"]), (2, 1), "nodes made, nodes run; one of them twice")
    same((part["sites_backward"], part["sites_gradient"], part["sites_captured"]), (2, 1, 1), "sites")


def rule__a_node_lets_go_unless_its_graph_is_retained(box):
    nodes = "first, second, third = torch.forward(), torch.forward(), torch.forward()\ntorch.make_block_at(segment)\n"
    run = under(box, START + nodes + """
torch.backward(first, torch.make_block)
torch.retain_graph(1)
torch.backward(second, torch.make_block)
torch.backward(third, torch.make_block)
torch.retain_graph(0)
torch.backward(third, torch.make_block)
""")
    same(run.status, 0, "status")
    part = box.parts(run)[0]
    same((part["n_nodes_run"], part["nodes_released"]), (3, 2), "nodes run, nodes that let go: the first and the third")


def rule__nodes_that_count_their_references_are_known_too(box):
    run = under(box, START + """
torch.count_references()
node, kept, gradient = torch.forward(), torch.forward(), torch.accumulate()
torch.make_block_at(segment)
torch.backward(node, torch.make_block)
torch.make_block_at(segment + 512)
torch.backward(gradient, torch.make_block)
""")
    same(run.status, 0, "status")
    part = box.parts(run)[0]
    same((part["n_nodes"], part["n_nodes_run"], part["nodes_released"], part["sites_gradient"]), (2, 1, 1, 1), "nodes made, run, that let go; gradients")


def rule__pinned_memory_is_counted(box):
    run = under(box, START + """
pinned, small = ctypes.c_void_p(), ctypes.c_void_p()
cudrv.call("cuMemAllocHost_v2", ctypes.byref(pinned), ctypes.c_size_t(1 << 20))
cudrv.call("cuMemAllocHost_v2", ctypes.byref(small), ctypes.c_size_t(4096))
cudrv.call("cuMemFreeHost", pinned)
""")
    same(run.status, 0, "status")
    part = box.parts(run)[0]
    same((part["pinned_bytes"], part["pinned_peak_bytes"]), (4096, (1 << 20) + 4096), "pinned")


def killed_after(box, seconds):
    """A program that allocates and frees blocks until it is killed at a random moment."""
    run = under(box, START + """
import signal
signal.setitimer(signal.ITIMER_REAL, %r)  # nobody handles it
while True:
    torch.blocks_made(1 << 40, 500)
    torch.blocks_freed(1 << 40, 300)
    torch.blocks_made(1 << 41, 500)
    torch.blocks_freed((1 << 40) + 300 * 512, 200)
    torch.blocks_freed(1 << 41, 500)
""" % seconds)
    assert run.status != 0, "it was to be killed"
    return run


def rule__killed_at_any_moment_the_sites_agree_with_the_blocks(box):
    """Every block is 512 bytes; an event in progress may be in one table and not yet in the other."""
    seen, delays = 0, list(range(200, 6200, 300))
    while delays or seen <= 1000:       # on a busy machine such a short time is not enough for even one event
        microseconds = delays.pop(0) if delays else microseconds * 2
        part = box.parts(killed_after(box, microseconds / 1e6))[0]
        seen += part["n_blocks"]
        assert abs(part["site_count"] - part["blocks"]) <= 2, part  # one more may be in the table twice
        assert abs(part["site_live"] - part["site_count"] * 512) <= 512, part
        assert abs(part["memory[0].allocated"] - part["site_live"]) <= 512, part
        assert abs(part["memory[0].peak_allocated"] - part["site_at_peak"]) <= 512, part


def numbers(data, at):
    """Numbers with 7 bits per byte, from `at` on; see struct cw_events in format.h."""
    value = shift = 0
    for at in range(at, len(data)):
        value |= (data[at] & 127) << shift
        shift += 7
        if not data[at] & 128:
            return value, at + 1
    raise AssertionError("cut short")


def unfolded(value):
    return -(value + 1) // 2 if value & 1 else value // 2


def read_events(path):
    with open(path, "rb") as stream:
        data = stream.read()
    same(data[:8], b"CUWHYMEM", "magic")
    at, address, found = 24, 0, []
    while at < len(data):
        kind, (what, at) = data[at] & 7, numbers(data, at + 1)
        if kind == 6:           # ASKED: what was read is the size
            found.append((kind, unfolded(what >> 1) * (1 if what & 1 else 512)))
            continue
        if kind == 7:           # MORE
            value, at = numbers(data, at)
            if what != 3:       # FREE: it depends on the time
                found.append((kind, what, value))
            continue
        assert kind < 4, "event %d" % kind
        values = []
        for _ in range(2 if kind % 2 == 0 else 1):
            value, at = numbers(data, at)
            values.append(unfolded(value >> 1) * (1 if value & 1 else 512))
        address += values[0]
        site, at = numbers(data, at) if kind % 2 == 0 else (None, at)
        found.append((kind, address, values[-1] if kind % 2 == 0 else None, site))
    return found, len(data) - 24


def rule__a_memory_trace_has_every_event(box):
    run = box.under(box.script(START + """
torch.blocks_made(segment, 300000)
torch.blocks_freed(segment, 299999)
"""), "--memory-trace", FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same(run.status, 0, "status")
    files = glob.glob(os.path.join(run.folder, "*.cwm"))
    same(len(files), 1, "files")
    events, size = read_events(files[0])
    segment = events[0][1]
    same((events[0][0], events[0][2]), (2, 20 << 20), "the segment")
    same(events[1:300001] == [(0, segment + i * 512, 512, events[1][3]) for i in range(300000)], True, "blocks made")
    same(events[300001:] == [(1, segment + i * 512, None, None) for i in range(299999)], True, "blocks freed")
    assert size <= 12 * len(events), "%.1f bytes an event" % (size / len(events))
    part = box.parts(run)[0]
    same((part["blocks"], part["n_blocks"]), (1, 300000), "the recording beside it")


def rule__a_memory_trace_has_what_pytorch_was_asked_for(box):
    """The size that PyTorch's allocator is given first, where the block is larger; and memory that the driver refused."""
    run = box.under(box.script(START + """
torch.block_asked.argtypes = [ctypes.c_uint64] * 3
torch.block_asked(segment, 3 << 20, (3 << 20) - 5000)
torch.block_asked(segment + (3 << 20), 1 << 20, (1 << 20) - 5)
try:
    cudrv.alloc(1 << 50)
except cudrv.CudaError:
    pass
"""), "--memory-trace", FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same(run.status, 0, "status")
    events, _ = read_events(glob.glob(os.path.join(run.folder, "*.cwm"))[0])
    segment = events[0][1]
    same([e[:3] for e in events], [(2, segment, 20 << 20), (6, (3 << 20) - 4608), (0, segment, 3 << 20),
                                   (0, segment + (3 << 20), 1 << 20), (7, 2, 1 << 50)], "events")


def rule__without_being_asked_there_is_no_memory_trace(box):
    run = under(box, START + "torch.blocks_made(segment, 10)\n")
    same((run.status, glob.glob(os.path.join(run.folder, "*.cwm"))), (0, []), "files")


def asked(box, run):
    """What is played back of a recording, and what is said about it."""
    argv = [box.cuwhy, "memory", "--what-if", "memory=24GiB", run.folder]
    return json.loads(box.plain(argv + ["--json"]).out)["what_if"][0], box.plain(argv).out


def rule__any_recording_can_be_asked_what_if(box):
    """Also of a program that was killed: the newest events are in the recording itself."""
    run = under(box, START + """
torch.blocks_made(segment, 300)
torch.blocks_freed(segment, 200)
os.kill(os.getpid(), 9)
""")
    played, told = asked(box, run)
    same((played["events"], played["events_before"], played["since"]), (500, 0, None), "events")
    assert "not kept" not in told, told


def rule__events_that_were_not_kept_are_said(box):
    """What was live before the oldest event is known all the same."""
    run = under(box, START + """
torch.blocks_made(segment, 400)
for _ in range(200):
    torch.blocks_made(segment + 512 * 400, 500)
    torch.blocks_freed(segment + 512 * 400, 500)
""", CUWHY_MEMORY_MB="16")
    played, told = asked(box, run)
    assert played["events_before"] > 50000 and played["since"] > 0, played
    same(played["events"] + played["events_before"] > 200000, True, "events and those before them")
    same(played["peak_allocated"], 900 * 512, "live then")
    assert "were not kept" in told and "--memory-trace" in told, told


def rule__a_killed_program_leaves_its_trace(box):
    run = box.under(box.script(START + """
torch.blocks_made(segment, 1000)
os.kill(os.getpid(), 9)
"""), "--memory-trace", FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same(run.status, 137, "status")
    events, _ = read_events(glob.glob(os.path.join(run.folder, "*.cwm"))[0])
    same(len(events), 1001, "events")


def rule__a_memory_trace_that_is_cut_is_not_exact(box):
    run = box.under(box.script(MANY % 1), "--memory-trace", FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same(run.status, 0, "status")
    lost = "events are missing"
    _, text = asked(box, run)
    same(lost in text, False, "a whole one: " + text)
    path, = glob.glob(os.path.join(run.folder, "*.cwm"))
    os.truncate(path, os.path.getsize(path) // 2)
    half, text = asked(box, run)
    same((lost in text, half["answers"][-1]["exact"]), (True, False), text)


def populates():
    """Does the kernel know MADV_POPULATE_WRITE?"""
    page = mmap.mmap(-1, mmap.PAGESIZE)
    try:
        page.madvise(23)
    except OSError:
        return False
    return True


def rule__the_recordings_own_memory_does_not_creep(box):
    """Tables that fill an event at a time must not add pages to the program's resident memory turn by turn: watchdogs and tests of
    others take that for a leak of the program (a round of 1,024 products added 128 KiB, for 16 rounds)."""
    if not populates():
        raise Skip("this kernel cannot map pages ahead (Linux 5.14)")
    run = box.under(box.script(START + """
nop = cudrv.kernel("nop")
def ours():
    pages, mine = 0, False
    for line in open("/proc/self/smaps"):
        word = line.split()
        if "-" in word[0]:
            mine = "/memfd:cuwhy" in line
        elif word[0] == "Rss:" and mine:
            pages += int(word[1])
    return pages
for turn in range(40):
    for _ in range(1024):
        torch.block_made(segment, 512, 1, 0)
        cudrv.launch(nop, (1,), (1,))
        torch.block_freed(segment, 512, 1, 0)
    print(ours())
"""), FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same(run.status, 0, "status")
    kib = [int(n) for n in run.out.split()]
    grew = [turn for turn in range(1, 40) if kib[turn] - kib[turn - 1] > 16]
    assert len(kib) == 40 and len(grew) <= 8 and not any(set(range(t, t + 4)) <= set(grew) for t in grew), kib
