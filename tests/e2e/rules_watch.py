# SPDX-License-Identifier: Apache-2.0
"""`cuwhy memory --watch`: the machine live, and memory by line of programs that run under `cuwhy run`."""
import contextlib
import json
import os
import pty
import signal
import subprocess
import time

import json_page
from harness import PATIENCE
from rules_blocks import START, line_of
from toolbox import same, wait_until

MIB = 1 << 20
WAITS = START + """
import sys
torch.reserve(20 << 20, 0)
torch.block_made(segment, 2 << 20, 1, 0)  # <- first
print("ready", flush=True)
sys.stdin.readline()
torch.block_made(segment + (4 << 20), 8 << 20, 1, 0)  # <- second
print("more", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def running(box, program=WAITS):
    """A program under cuwhy that waits for lines."""
    command = [box.cuwhy, "run", "--gpu", "sim:tiny", "--out", os.path.join(box.scratch, "recording"), "--", *box.script(program)]
    env = box.env(FAKE_TORCH=box.library("fake_torch", "-lpthread", "-fexceptions"))
    started = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        same(started.stdout.readline(), "ready\n", "the program")
        yield started
    finally:
        _, said = started.communicate(timeout=PATIENCE)
        same(started.returncode, 0, "the watched program's own status (%s)" % said)


def machine(box, nvml="gpu"):
    return box.env(LD_LIBRARY_PATH=box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML=nvml, TERM="xterm")


@contextlib.contextmanager
def watching(box, *options, **streams):
    watch = subprocess.Popen([box.cuwhy, "memory", "--watch", *options], env=machine(box), **streams)
    try:
        yield watch
    finally:
        watch.send_signal(signal.SIGINT)
        same(watch.wait(PATIENCE), 0, "status after Ctrl-C")


def of_program(box, frame):
    """Tests run side by side: the process of this one's program."""
    found = [p for p in frame["recorded"] if box.scratch in p["command"]]
    return found[0] if found else None


def frame_with(box, watch, allocated):
    """The first frame in which the program has so many bytes in tensors."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        frame = json.loads(watch.stdout.readline())
        process = of_program(box, frame)
        if process and process["devices"] and process["devices"][0]["allocated"] == allocated:
            return frame, process["devices"][0]
    raise AssertionError("no frame has %d bytes" % allocated)


def lines(ledger):
    return sorted((x["line"], x["bytes"]) for x in ledger["lines"] if x["part"] == "tensors")


def rule__the_memory_of_a_recorded_program_is_watched_by_line(box):
    first, second = (line_of(WAITS, "first"), 2 * MIB), (line_of(WAITS, "second"), 8 * MIB)
    with running(box) as program, watching(box, "--json", stdout=subprocess.PIPE, text=True) as watch:
        frame, ledger = frame_with(box, watch, 2 * MIB)
        same(lines(ledger), [first], "lines at first")
        same(list(json_page.flaws(frame, "usage")), [], "flaws of the documented JSON")
        same(len(frame["gpus"]), 1, "GPUs")
        program.stdin.write("go\n")
        program.stdin.flush()
        _, ledger = frame_with(box, watch, 10 * MIB)
        same(lines(ledger), [first, second], "lines later")


def rule__a_frame_comes_every_second(box):
    with watching(box, "--json", stdout=subprocess.PIPE, text=True) as watch:
        times = [json.loads(watch.stdout.readline())["mono_ns"] for _ in range(4)]
    gaps = [(b - a) / 1e9 for a, b in zip(times, times[1:])]
    assert all(gap > 0.5 for gap in gaps), gaps


def rule__a_terminal_is_redrawn_and_never_scrolls(box):
    with running(box):
        master, slave = pty.openpty()
        os.set_blocking(master, False)
        subprocess.run(["stty", "rows", "12", "cols", "60"], stdin=slave, check=True)
        seen = bytearray()

        def more(frames):
            with contextlib.suppress(BlockingIOError):
                seen.extend(os.read(master, 65536))
            return seen.count(b"\x1b[J") >= frames

        with watching(box, stdout=slave, stderr=slave):
            wait_until(lambda: more(2), "frames")
        os.close(slave)
        os.close(master)
    for frame in seen.decode().split("\x1b[H")[1:3]:
        rows = frame.replace("\x1b[K", "").replace("\x1b[J", "").split("\n")
        assert len(rows) <= 12 and all(len(row.rstrip("\r")) <= 60 for row in rows), rows
    assert b"GPU 0" in seen and b"Ctrl-C" in seen, seen


def rule__with_nothing_to_watch_it_says_so(box):
    answer = subprocess.run([box.cuwhy, "memory", "--watch", "--top", "3", "file"], env=machine(box), capture_output=True, text=True)
    same(answer.returncode, 2, "status with a file")
    assert "--watch is for this machine" in answer.stderr, answer.stderr
