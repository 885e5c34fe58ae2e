# SPDX-License-Identifier: Apache-2.0
"""`cuwhy export`: what a recording knows about PyTorch's allocator, in the format of PyTorch's own snapshots."""
import json
import os
import pickle
import pickletools
import subprocess
import sys

import harness
from rules_blocks import START, line_of, under
from toolbox import Skip, same

MIB = 1 << 20

PROGRAM = START + """
small = cudrv.alloc(2 << 20)  # <- small
other = cudrv.alloc(4 << 20)  # no block of PyTorch: of another library


def make(address, size):
    torch.block_made(address, size, 1, 0)  # <- made


make(segment, 1 << 20)
make(segment + (1 << 20), 3 << 20)
torch.block_freed(segment + (1 << 20), 3 << 20, 1, 0)  # <- freed
make(segment + (8 << 20), 12 << 20)
torch.block_made(small + 512, 512, 1, 0)  # <- tiny
node = torch.forward()  # <- forward
torch.make_block_at(small + 4096)
torch.backward(node, torch.make_block)
"""


def export(box, run, *more):
    path = os.path.join(box.scratch, "snapshot.pickle")
    told = harness.Run([box.cuwhy, "export", "--torch-snapshot", "-o", path, *more, run.folder], box.env())
    same((told.status, told.err), (0, ""), "export")
    with open(path, "rb") as f:
        return path, pickle.load(f), told.out


def recorded(box, program=PROGRAM, **more):
    run = under(box, program, **more)
    same(run.status, 0, "the program")
    return run


def line_of_frames(frames):
    """Of the innermost frame in the program's own code."""
    return next((f["line"] for f in frames if f["filename"].endswith("program.py")), None)


def rule__a_snapshot_has_the_segments_and_blocks_of_the_recording(box):
    conf = "max_split_size_mb:64,expandable_segments:False"
    _, snapshot, told = export(box, recorded(box, PYTORCH_CUDA_ALLOC_CONF=conf))
    same(sorted(snapshot), ["allocator_settings", "device_traces", "external_annotations", "segments"], "keys")
    assert ": 2 segments, 4 blocks, " in told, told
    large, small = sorted(snapshot["segments"], key=lambda s: -s["total_size"])
    same([large[k] for k in ("total_size", "allocated_size", "active_size", "segment_type", "device", "stream",
                             "segment_pool_id", "is_expandable")],
         [20 * MIB, 13 * MIB, 13 * MIB, "large", 0, 0, (0, 0), False], "large segment")
    same(line_of_frames(large["frames"]), line_of(PROGRAM, "segment"), "its line")
    base = large["address"]
    same([(b["address"] - base, b["size"], b["requested_size"], b["state"], line_of_frames(b["frames"]))
          for b in large["blocks"]],
         [(0, MIB, MIB, "active_allocated", line_of(PROGRAM, "made")), (MIB, 7 * MIB, 0, "inactive", None),
          (8 * MIB, 12 * MIB, 12 * MIB, "active_allocated", line_of(PROGRAM, "made"))], "large blocks")
    same((small["total_size"], small["segment_type"], line_of_frames(small["frames"])),
         (2 * MIB, "small", line_of(PROGRAM, "small")), "small segment")
    same([(b["size"], b["state"], line_of_frames(b["frames"])) for b in small["blocks"]],
         [(512, "inactive", None), (512, "active_allocated", line_of(PROGRAM, "tiny")), (3072, "inactive", None),
          (512, "active_allocated", line_of(PROGRAM, "forward")), (2 * MIB - 4608, "inactive", None)], "small blocks")
    same(snapshot["allocator_settings"],
         {"PYTORCH_CUDA_ALLOC_CONF": conf, "max_split_size": 64 * MIB,
          "garbage_collection_threshold": 0.0, "expandable_segments": False}, "settings")


def rule__the_history_is_in_order_and_ends_in_the_segments(box):
    _, snapshot, _ = export(box, recorded(box))
    events = snapshot["device_traces"][0]
    same([e["action"] for e in events],
         ["segment_alloc"] * 2 + ["alloc", "alloc", "free_requested", "free_completed"] + ["alloc"] * 3, "actions")
    same([e["time_us"] for e in events], sorted(e["time_us"] for e in events), "times")
    freed = [e for e in events if e["action"] == "free_requested"]
    same([(e["size"], line_of_frames(e["frames"])) for e in freed], [(3 * MIB, line_of(PROGRAM, "freed"))], "free")
    live = {}
    for e in events:
        if e["action"] == "alloc":
            live[e["addr"]] = e["size"]
        elif e["action"] == "free_completed":
            del live[e["addr"]]
    same(live, {b["address"]: b["size"] for s in snapshot["segments"] for b in s["blocks"]
                if b["state"] == "active_allocated"}, "what is left")
    made = [e["frames"] for e in events
            if e["action"] == "alloc" and line_of_frames(e["frames"]) == line_of(PROGRAM, "made")]
    assert made[0][0] is made[1][0], "equal frames are one object"
    assert made[0][0]["filename"].endswith("program.py") and made[0][0]["name"] == "make", made


OLD = START + """
gone = cudrv.alloc(4 << 20)
torch.block_made(gone, 4096, 1, 0)
torch.block_freed(gone, 4096, 1, 0)
cudrv.free(gone)
torch.block_made(1 << 44, 4096, 1, 0)  # in memory that nobody saw
torch.block_freed(1 << 44, 4096, 1, 0)
again = cudrv.alloc(4 << 20)
torch.block_made(again, 8192, 1, 0)
kept = [segment + i * 512 for i in range(2500)]
for address in kept:
    torch.block_made(address, 512, 1, 0)
"""


def back_in_time(snapshot):
    """Replays the history from its end as PyTorch's viewer does; every block must always be in a segment."""
    segments = {s["address"]: s["total_size"] for s in snapshot["segments"]}
    blocks = {b["address"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
    for event in reversed(snapshot["device_traces"][0]):
        for block in blocks if event["action"].startswith("segment") else ():
            assert any(a <= block < a + n for a, n in segments.items()), "%x is in no segment: %s" % (block, event)
        if event["action"] == "alloc":
            blocks.remove(event["addr"])
        elif event["action"] == "free_completed":
            blocks.add(event["addr"])
        elif event["action"] == "segment_alloc":
            same(segments.pop(event["addr"]), event["size"], "segment")
        elif event["action"] == "segment_free":
            segments[event["addr"]] = event["size"]
    same((segments, blocks), ({}, set()), "before the first event")


def rule__the_history_can_be_replayed_backwards(box):
    _, snapshot, _ = export(box, recorded(box, OLD))
    actions = [e["action"] for e in snapshot["device_traces"][0]]
    same({a: actions.count(a) for a in actions},
         {"segment_alloc": 3, "segment_free": 1, "alloc": 2502, "free_requested": 1, "free_completed": 1}, "events")
    back_in_time(snapshot)
    _, snapshot, _ = export(box, recorded(box))
    back_in_time(snapshot)


def rule__long_lists_come_in_batches(box):
    """PyTorch's viewer takes the items of one batch as arguments of one call, which a browser limits."""
    path, _, _ = export(box, recorded(box, OLD))
    marks, depth, most = [], 0, 0
    with open(path, "rb") as f:
        for op, _, _ in pickletools.genops(f):
            if op.name == "MARK":
                marks.append(depth)
            elif op.name in ("APPENDS", "SETITEMS"):
                most, depth = max(most, depth - marks[-1]), marks.pop()
            elif op.name == "TUPLE2":
                depth -= 1
            elif op.name not in ("PROTO", "MEMOIZE", "STOP"):
                depth += 1
    same(most, 1000, "items of the longest batch")


def rule__mapped_pieces_side_by_side_are_one_expandable_segment(box):
    program = START + """
cudrv.free(segment)
base, handle = ctypes.c_uint64(), ctypes.c_uint64()
prop = (ctypes.c_int * 16)(1, 0, 1, 0)  # pinned, no handle to share, on device 0
none, size = cudrv.u64(0), cudrv.u64(20 << 20)
cudrv.call("cuMemAddressReserve", ctypes.byref(base), cudrv.u64(80 << 20), none, none, none)
for i in (0, 1, 3):
    cudrv.call("cuMemCreate", ctypes.byref(handle), size, prop, none)
    cudrv.call("cuMemMap", cudrv.u64(base.value + i * (20 << 20)), size, none, handle, none)
torch.block_made(base.value, 30 << 20, 1, 0)
torch.block_made(base.value + (60 << 20), 1 << 20, 1, 0)
"""
    run = recorded(box, program, PYTORCH_ALLOC_CONF="expandable_segments:True")
    _, snapshot, _ = export(box, run)
    same([(s["total_size"], s["is_expandable"], s["segment_type"]) for s in snapshot["segments"]],
         [(40 * MIB, True, "large"), (20 * MIB, True, "large")], "segments")
    same(snapshot["allocator_settings"]["expandable_segments"], True, "setting")


def rule__blocks_without_a_segment_are_told_of(box):
    run = under(box, START + "torch.blocks_made(1 << 40, 3)\n")
    path = os.path.join(box.scratch, "snapshot.pickle")
    told = harness.Run([box.cuwhy, "export", "--torch-snapshot", "-o", path, run.folder], box.env())
    same(told.status, 0, "status")
    assert told.err.startswith("cuwhy: 3 blocks are not in any recorded allocation"), told.err
    with open(path, "rb") as f:
        snapshot = pickle.load(f)
    same([s["total_size"] == s["allocated_size"] == s["blocks"][0]["size"] for s in snapshot["segments"]], [True] * 3,
         "segments")


def rule__a_recording_without_pytorch_is_refused_in_words(box):
    run = recorded(box, "import cudrv\ncudrv.init()\ncudrv.alloc(4096)\n")
    told = harness.Run([box.cuwhy, "export", "--torch-snapshot", "-o", "-", run.folder], box.env())
    same((told.status, told.out), (2, ""), "status")
    assert told.err.startswith("cuwhy: no PyTorch memory in "), told.err


def rule__one_of_several_processes_is_chosen_by_its_number(box):
    run = recorded(box, """
import subprocess, sys
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
""" + START + "torch.blocks_made(segment, len(sys.argv))\n")
    command = [box.cuwhy, "export", "--torch-snapshot", "-o", "-", run.folder]
    told = harness.Run(command, box.env())
    assert told.status == 2 and "several processes" in told.err and "--pid" in told.err, told.err
    with open(os.path.join(run.folder, "run.json"), encoding="utf-8") as f:
        pids = [p["pid"] for p in json.load(f)["processes"] if p.get("part")]
    sizes = []
    for pid in pids:
        _, snapshot, _ = export(box, run, "--pid", str(pid))
        sizes.append(sum(b["state"] == "active_allocated" for s in snapshot["segments"] for b in s["blocks"]))
    same(sorted(sizes), [1, 2], "blocks of each")


CHURN = START + """
import random
random.seed(5)
torch.out_of_memory.argtypes = [ctypes.c_uint64, ctypes.c_int]
extra = cudrv.alloc(4 << 20)
torch.block_made(extra, 4096, 1, 0)
torch.block_freed(extra, 4096, 1, 0)
cudrv.free(extra)
live = {}
for step in range(40000):
    place = random.randrange(300)
    if place in live:
        torch.block_freed(segment + place * 65536, live.pop(place), 1, 0)
    else:
        live[place] = 512 * random.randint(1, 100)
        torch.block_made(segment + place * 65536, live[place], 1, 0)  # <- churn
torch.out_of_memory(1 << 40, 0)  # <- gave up
torch.reserve(20 << 20, 0)
torch.block_made(segment + 310 * 65536, 512, 1, 0)
print(sum(live.values()) + 512, len(live) + 1)
"""


def traced(box, program):
    run = box.under(box.script(program), "--memory-trace",
                    FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    same(run.status, 0, "the program (%s)" % run.err[-300:])
    return run


def most_allocated(events):
    now, most, size = 0, 0, {}
    for e in events:
        if e["action"] == "alloc":
            size[e["addr"]] = e["size"]
            now += e["size"]
        elif e["action"] == "free_completed":
            now -= size.pop(e["addr"])
        most = max(now, most)
    return now, most


def rule__with_a_memory_trace_the_history_is_whole(box):
    run = traced(box, CHURN)
    total, count = map(int, run.out.split())
    path, snapshot, told = export(box, run)
    assert "--memory-trace" not in told, told
    events = snapshot["device_traces"][0]
    actions = [e["action"] for e in events]
    made, freed = actions.count("alloc"), actions.count("free_completed")
    same((made + freed, made - freed), (40003, count), "blocks made and freed, and what is left of them")
    same({a: actions.count(a) for a in actions if a.startswith("segment") or a == "oom"},
         {"segment_alloc": 2, "segment_free": 1, "oom": 1}, "other events")
    oom = events[actions.index("oom")]
    same((oom["size"], line_of_frames(oom["frames"]), oom["device_free"] > 0),
         (1 << 40, line_of(CHURN, "gave up"), True), "oom")
    lines = {line_of_frames(e["frames"]) for e in events if e["action"] == "alloc"}
    assert line_of(CHURN, "churn") in lines and None not in lines, lines
    now, most = most_allocated(events)
    part = box.parts(run)[0]
    same((now, most), (total, part["memory[0].peak_allocated"]), "replayed forwards")
    back_in_time(snapshot)
    read = harness.Run([box.cuwhy, "memory", "--json", path], box.env())
    device = json.loads(read.out)["devices"][0]
    same((device["allocated"], device["peak"]["allocated"]), (total, most), "read by ourselves")


def rule__without_a_memory_trace_the_snapshot_says_so(box):
    _, _, told = export(box, recorded(box))
    assert "freed last" in told and "--memory-trace" in told, told


def torch_python():
    """A Python with PyTorch: $TORCH_PYTHON, or this one."""
    for python in (os.environ.get("TORCH_PYTHON"), sys.executable):
        command = [python, "-c", "import torch.cuda._memory_viz"]
        if python and subprocess.run(command, capture_output=True).returncode == 0:
            return python
    raise Skip("no PyTorch ($TORCH_PYTHON names a Python that has it)")


VIEW = """
import json, pickle, sys
from torch.cuda import _memory_viz as viz
with open(sys.argv[1], "rb") as f:
    data = pickle.load(f)
plots = [len(viz.trace_plot(data)), len(viz.trace_plot(data, plot_segments=True)), len(viz.segment_plot(data))]
print(json.dumps([viz.segsum(data), viz.trace(data), plots, viz.memory(data, lambda s: s)]))
"""


def rule__pytorchs_own_viewer_reads_a_whole_history(box):
    python = torch_python()
    path, snapshot, _ = export(box, traced(box, CHURN))
    view = subprocess.run([python, "-c", VIEW, path], capture_output=True, text=True)
    same(view.returncode, 0, "the viewer: " + view.stderr[-500:])
    summary, trace, plots, _ = json.loads(view.stdout)
    assert "%d entries" % len(snapshot["device_traces"][0]) in trace and "OutOfMemoryError" in trace, trace[-300:]
    assert "segments: 1\ntotal_reserved: 20.0MiB\n" in summary, summary
    assert min(plots) > 1000, plots


def rule__pytorchs_own_viewer_reads_the_snapshot(box):
    python = torch_python()
    path, _, _ = export(box, recorded(box))
    view = subprocess.run([python, "-c", VIEW, path], capture_output=True, text=True)
    same(view.returncode, 0, "the viewer: " + view.stderr[-500:])
    summary, trace, plots, flames = json.loads(view.stdout)
    assert "segments: 2\ntotal_reserved: 22.0MiB\ntotal_allocated: 13.0MiB\n" in summary, summary
    assert "9 entries" in trace and "cudaMalloc" in trace, trace
    assert min(plots) > 1000, plots
    assert ";active_allocated;program.py:" in flames, flames
    assert "program.py:%d:make %d" % (line_of(PROGRAM, "made"), MIB) in flames, flames
