#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failed assertions of Triton's kernels: is the error that a program sees the same with and without cuwhy?

    tests/gpu/triton_asserts.py [--build build] [--python python3] [--gpu sim:h200] [--all] [name…]

Every kind of assertion (triton_asserting.py), and every way in which a program may notice it (NOTICES below), each once, or with --all in all
combinations: without cuwhy, under it, and under it with --no-core-dump. What counts is the error number: of PyTorch's exception, and of the driver's calls afterwards. Of each dump
that was left, a line says whether it is complete, and which exceptions its lanes and multiprocessors have, because with
dumps armed the driver reports 719 for an assertion, and the recorder goes by the dump to make it 710 (docs/develop/coredump.md). A name is part of `kind.notice`.
Status 1: a number differs, or a verdict names no assertion. Without a GPU, PyTorch or Triton everything is skipped, with a message. --gpu tries the
program itself: nothing fails on a simulated GPU, and the numbers must all be 0.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import glob
import json
import multiprocessing
import os
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as gpu  # noqa: E402

KINDS = ("always", "masked", "loaded", "one_lane", "many_blocks", "overflow_add", "overflow_mul", "overflow_narrow", "pytorch")
NOTICES = ("synchronize", "item", "copy", "event", "query", "launches", "twice", "driver_context", "driver_stream", "driver_copy", "late", "spawn", "fork")
MODES = (("plain", None), ("cuwhy", []), ("no dump", ["--no-core-dump"]))
MARK = "triton-asserts: "
LIMIT = 120             # seconds for one program, the compiler's included
WORDS = {"device-side assert": 710, "unspecified launch failure": 719, "illegal memory access": 700, "out of memory": 2}
NOT_READY = 600
EXPECTED = 710


# ---- in the program -----------------------------------------------------------------------------------


def number_of(error):
    """CUDA's number behind an exception: newer releases of PyTorch give it, or its message tells; else the message."""
    number = getattr(error, "error_code", None)
    text = " ".join(str(error).split())
    return number or next((code for words, code in WORDS.items() if words in text), text[:80])


def numbered(call, *args):
    try:
        call(*args)
    except Exception as error:  # whatever it is, its number is what we want to know
        return number_of(error)
    return 0


def launch_until_it_fails(torch):
    x, until = torch.ones(2, device="cuda"), time.monotonic() + 3
    while time.monotonic() < until:
        x.add_(1)


def query_until_it_fails(cuda):
    until, code = time.monotonic() + 3, 0
    while code in (0, NOT_READY) and time.monotonic() < until:
        code = cuda.cuStreamQuery(None)
    return code


def notice(how, torch, fail):
    """Numbers in the order in which the program got them."""
    cuda, word = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint32()
    ones, event = torch.ones(2, device="cuda"), torch.cuda.Event()
    torch.cuda.synchronize()
    seen = [numbered(fail)]
    event.record()
    if how == "twice":
        seen += [numbered(torch.cuda.synchronize), numbered(fail)]
    elif how == "item":
        seen.append(numbered(lambda: ones.sum().item()))
    elif how == "copy":
        seen.append(numbered(ones.cpu))
    elif how == "event":
        seen.append(numbered(event.synchronize))
    elif how == "launches":
        seen.append(numbered(launch_until_it_fails, torch))
    elif how == "query":
        seen.append(query_until_it_fails(cuda))
    elif how == "driver_context":
        seen.append(cuda.cuCtxSynchronize())
    elif how == "driver_stream":
        seen.append(cuda.cuStreamSynchronize(None))
    elif how == "driver_copy":
        seen.append(cuda.cuMemcpyDtoH_v2(ctypes.byref(word), ctypes.c_uint64(ones.data_ptr()), ctypes.c_size_t(4)))
    elif how == "late":
        time.sleep(0.5)
    seen.append(numbered(torch.cuda.synchronize))
    return seen + [cuda.cuCtxSynchronize(), cuda.cuStreamQuery(None)]


def child(kind, how):
    import torch
    import triton_asserting
    print(MARK + json.dumps(notice(how, torch, triton_asserting.failing(kind))), flush=True)


def program(kind, how):
    if how not in ("spawn", "fork"):
        child(kind, how)
        return
    process = multiprocessing.get_context(how).Process(target=child, args=(kind, "synchronize"))
    process.start()
    process.join()
    sys.exit(process.exitcode)


# ---- dumps --------------------------------------------------------------------------------------------

SM_TABLE, LANE_TABLE, WARP_TABLE = 0x8000000b, 0x8000000f, 0x8000000e
FIELDS = {LANE_TABLE: ("lanes", 32), SM_TABLE: ("SMs", 8), WARP_TABLE: ("broken warps", 20)}


def what_a_dump_has(path):
    """In words: its size, and how many rows have which exception (0 is left out)."""
    with open(path, "rb") as stream:
        data = stream.read()
    found = {name: collections.Counter() for name, _ in FIELDS.values()}
    try:
        start, = struct.unpack_from("<Q", data, 40)
        count = struct.unpack_from("<H", data, 60)[0] or struct.unpack_from("<Q", data, start + 32)[0]
        if not start:
            raise struct.error
        for section in range(count):
            _, table, _, _, offset, size, _, _, _, each = struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * section)
            if table in FIELDS and each:
                name, field = FIELDS[table]
                found[name].update(struct.unpack_from("<I", data, at + field)[0] for at in range(offset, offset + size - each + 1, each))
    except struct.error:
        return "%d bytes, not complete" % len(data)
    return "%d bytes, complete; %s" % (len(data), "; ".join(
        "%s with exceptions %s" % (name, dict(counter) or "none") for name, counter in (
            (name, {k: v for k, v in sorted(counter.items()) if k}) for name, counter in found.items())))


# ---- around it ----------------------------------------------------------------------------------------


class Runner:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.cuwhy, self.library = (os.path.join(os.path.abspath(args.build), name) for name in ("cuwhy", "sim"))

    def environment(self, plain):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY")}
        env.update(PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", TRITON_CACHE_DIR=os.path.join(self.folder, "triton"))
        if self.args.gpu and plain:
            env.update(LD_LIBRARY_PATH=self.library, CUWHY_SIM=self.args.gpu[len("sim:"):])
        return env

    def run(self, kind, how, mode, options):
        """The numbers that it saw, or what became of it in words; its verdict; what its dumps have."""
        recording = os.path.join(self.folder, "%s.%s.%s" % (kind, how, mode.replace(" ", "-")))
        simulated = ["--gpu", self.args.gpu] if self.args.gpu else []
        under = [] if options is None else [self.cuwhy, "run", "--out", recording, *simulated, *options, "--"]
        command = [*under, self.args.python, os.path.abspath(__file__), "--program", kind, how]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=self.environment(options is None))
        except subprocess.TimeoutExpired:
            return "still running after %d s" % LIMIT, "", []
        said = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
        seen = json.loads(said[-1][len(MARK):]) if said else "status %d: %s" % (
            done.returncode, (done.stderr.strip().splitlines() or ["nothing"])[-1])
        return seen, verdict_in(recording), [what_a_dump_has(path) for path in sorted(glob.glob(os.path.join(recording, "*.cudacore")))]


def verdict_in(recording):
    """Causes, of handled failures as well: the program catches all of them."""
    try:
        with open(os.path.join(recording, "verdict.json"), encoding="utf-8") as stream:
            verdict = json.load(stream)
    except OSError:
        return ""
    return " ".join(sorted({one["cause"] for one in [verdict, *verdict.get("notes", []), *verdict.get("others", [])]} - {"none"}))


def first_number(seen):
    return next((number for number in seen if number not in (0, NOT_READY)), 0) if isinstance(seen, list) else seen


def judge(seen, verdicts, simulated):
    """What is wrong, in words."""
    wanted = 0 if simulated else EXPECTED
    plain = first_number(seen["plain"])
    if not isinstance(seen["plain"], list):
        return ""               # it does not work without cuwhy either
    wrong = ["%s: %s instead of %s" % (mode, first_number(seen[mode]), plain) for mode in seen if first_number(seen[mode]) != plain]
    wrong += ["%s: not every call says so" % mode for mode in seen if isinstance(seen[mode], list) and set(seen[mode][-2:]) != set(seen["plain"][-2:])]
    if plain == wanted and not simulated:
        wrong += ["%s: the verdict is %s" % (mode, text or "empty") for mode, text in verdicts.items()
                  if mode != "plain" and text and "assert" not in text and "out-of-range" not in text]
    return "; ".join(wrong)


def compare(runner, kind, how):
    with concurrent.futures.ThreadPoolExecutor(len(MODES)) as pool:     # only one of them dumps
        ran = {mode: pool.submit(runner.run, kind, how, mode, options) for mode, options in MODES}
    seen, verdicts = ({mode: job.result()[i] for mode, job in ran.items()} for i in (0, 1))
    dumps = ["%s: %s" % (mode, text) for mode, job in ran.items() for text in job.result()[2]]
    wrong = judge(seen, verdicts, runner.args.gpu)
    print("%s - %-34s %s%s" % ("not ok" if wrong else "ok", kind + "." + how, "  ".join(
        "%s %s" % (mode, numbers) for mode, numbers in seen.items()), "  # " + wrong if wrong else ""), flush=True)
    for text in dumps:
        print("    # dump, %s" % text, flush=True)
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description="Triton's assertions, with and without cuwhy")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--gpu", help="the simulated GPU, to test this test: sim:h200")
    parser.add_argument("--all", action="store_true", help="each kind in each way")
    parser.add_argument("--program", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="run only combinations whose name contains one of these")
    args = parser.parse_args()
    if args.program:
        program(*args.program)
        return 0
    lacking = sorted({"GPU", "torch", "triton"} & gpu.what_is_missing(args.python) - ({"GPU"} if args.gpu else set()))
    if lacking:
        print("ok - Triton's assertions # SKIP no %s" % ", ".join(lacking))
        return 0
    chosen = [(kind, how) for kind in KINDS for how in NOTICES
              if (any(name in kind + "." + how for name in args.names) if args.names else args.all or kind == KINDS[0] or how == NOTICES[0])]
    with tempfile.TemporaryDirectory(prefix="cuwhy-asserts-") as folder:
        runner = Runner(args, folder)
        bad = sum(compare(runner, kind, how) for kind, how in chosen)
    print("%d of %d see the same error with and without cuwhy" % (len(chosen) - bad, len(chosen)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
