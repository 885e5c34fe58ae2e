# SPDX-License-Identifier: Apache-2.0
"""`cuwhy export --chrome-trace`: what a recording knows, on the time axis of Perfetto."""
import glob
import json
import os
import shutil

import harness
import rules_blocks
import rules_oom
from toolbox import same


def trace_of(box, folder, *more, status=0):
    path = os.path.join(box.scratch, "trace.json")
    if os.path.exists(path):
        os.remove(path)
    told = harness.Run([box.cuwhy, "export", "--chrome-trace", "-o", path, *more, folder], box.env())
    same(told.status, status, "exit status (%s%s)" % (told.out, told.err))
    same(os.path.exists(path), status == 0, "there is a file")
    if status:
        return told
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)["traceEvents"]


def of(events, category):
    return [e for e in events if e.get("cat") == category]


def rule__a_launch_has_its_kernel_its_line_and_its_parameters(box):
    """And the one to blame is marked; the verdict is at the moment of failure, not before it."""
    program = rules_blocks.PAST
    run = rules_blocks.under(box, program, gpu="sim:tiny")
    events = trace_of(box, run.folder)
    kernels = of(events, "kernel")
    same([e["name"] for e in kernels], ["fill", "fill", "oob_store"], "kernels")
    blamed = [e for e in kernels if "blamed" in e["args"]]
    same(len(blamed), 1, "launches that are blamed")
    args = blamed[0]["args"]
    assert args["line"].endswith(":%d in <module>" % rules_blocks.line_of(program, "here")), args
    same((args["kernel"], args["grid"], args["block"]), ("oob_store(float*, long)", "1x1x1", "32x1x1"), "launch")
    same(args["parameters"][1], "0x10000000000", "the second parameter")
    assert args["stack"][-1] == args["line"], args
    verdicts = of(events, "verdict")
    same([e["args"]["cause"] for e in verdicts], ["illegal-access-out-of-bounds"], "verdict")
    assert verdicts[0]["ts"] >= blamed[0]["ts"], "a fault before its launch"
    failed = of(events, "failure")
    assert any(e["args"].get("error", "").startswith("700 ") for e in failed), failed
    calls = of(events, "driver")
    assert any(e["name"].startswith("cuMemAlloc") and e["args"]["bytes"] == hex(20 << 20) for e in calls), calls


def rule__counters_follow_the_memory(box):
    run = box.under(box.script(rules_oom.GROWTH), FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"), gpu="sim:tiny")
    events = trace_of(box, run.folder)
    said = harness.Run([box.cuwhy, "memory", "--json", run.folder], box.env())
    ledger = json.loads(said.out)["devices"][0]
    counters = [e for e in events if e["ph"] == "C"]
    allocated = [e["args"]["bytes"] for e in counters if e["name"] == "GPU 0: allocated by PyTorch"]
    same(max(allocated), ledger["peak_allocated"], "most memory")
    for name in sorted(set(e["name"] for e in counters)):
        times = [e["ts"] for e in counters if e["name"] == name]
        assert times == sorted(times), "time goes back in " + name
    same(len(set(e["name"] for e in counters)), 3, "counters")


MANY = """
import cudrv
cudrv.init()
fill = cudrv.kernel("fill")
memory = cudrv.alloc(4096)
for step in range(20000):
    cudrv.launch(fill, (1,), (32,), cudrv.u64(memory), cudrv.f32(1), cudrv.i32(32))
cudrv.alloc(1 << 50)
"""


def rule__a_trace_is_bounded_like_its_recording(box):
    events = trace_of(box, box.under(box.script(MANY), gpu="sim:tiny").folder)
    kernels = of(events, "kernel")
    same(len(kernels), 8192, "launches")
    ends = {}
    for e in kernels:
        row = e["pid"], e["tid"]
        assert ends.get(row, 0) <= e["ts"] + 0.0015, "launches of one row overlap"
        ends[row] = e["ts"] + e["dur"]


def rule__a_damaged_recording_gives_a_trace_or_a_reason(box):
    folder = rules_blocks.under(box, rules_blocks.PAST, gpu="sim:tiny").folder
    part = glob.glob(os.path.join(folder, "*.cwr"))[0]
    copy = os.path.join(box.scratch, "copy.cwr")
    size = os.path.getsize(part)
    for keep in (size // 2, size // 8, 20000, 9000):
        shutil.copy(part, copy)
        os.truncate(copy, keep)
        told = harness.Run([box.cuwhy, "export", "--chrome-trace", "-o", "-", copy], box.env())
        assert told.status in (0, 2), told.err
        assert "cut short" in told.err, told.err
        if told.status == 0:
            json.loads(told.out)
    shutil.copy(part, copy)
    with open(copy, "r+b") as stream:
        stream.seek(8)
        stream.write(b"\xff\x7f")
    assert "format 32767" in trace_of(box, copy, status=2).err
    trace_of(box, folder, "--pid", "1", status=2)
