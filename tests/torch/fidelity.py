#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of the same programs on a real and on a simulated GPU.

    tests/torch/fidelity.py measure [--users] [name…] > h200.jsonl  on the GPU that PyTorch sees
    cuwhy run --gpu sim:h200 python3 tests/torch/fidelity.py measure > sim.jsonl
    tests/torch/fidelity.py compare tests/torch/h200.jsonl sim.jsonl

The programs are those of programs.py and of programs_users.py, which need transformers; --users: only the latter.
Each program is a process of its own. Peak allocated and reserved are PyTorch's; used is what the driver says at the end.
"""
import importlib.util
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
LIMIT = 300     # seconds a program: one that waits for a value that no kernel computes never ends on a simulated GPU


def listed(users=False):
    """All programs by name, or those of the users alone."""
    import programs
    import programs_users
    both = programs.PROGRAMS.keys() & programs_users.PROGRAMS.keys()
    assert not both, "two programs of one name: %s" % ", ".join(both)
    return programs_users.PROGRAMS if users else {**programs.PROGRAMS, **programs_users.PROGRAMS}


def one(name):
    import torch
    torch.manual_seed(0)
    listed()[name]()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"program": name, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "total": total,
                      "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
                      "used": total - free}), flush=True)


def measure(names):
    users = "--users" in names
    names = [name for name in names if name != "--users"]
    for name, function in listed(users).items():
        if names and name not in names:
            continue
        if function.needs and not importlib.util.find_spec(function.needs):
            print("%s: SKIPPED: there is no %s" % (name, function.needs), file=sys.stderr, flush=True)
            continue
        env = {**os.environ, **function.settings}
        try:
            done = subprocess.run([sys.executable, os.path.abspath(__file__), "one", name], env=env, capture_output=True, text=True,
                                  timeout=LIMIT)
        except subprocess.TimeoutExpired:
            print(json.dumps({"program": name, "error": "did not end within %d s" % LIMIT}), flush=True)
            continue
        if done.returncode:
            error = (done.stderr.strip().splitlines() or ["no message"])[-1]
            print(json.dumps({"program": name, "error": error[:300]}), flush=True)
        else:
            print(done.stdout.strip().splitlines()[-1], flush=True)


def read(path):
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.startswith("{")]
    return {row["program"]: row for row in rows}


def compare(first, second):
    """The table, and 1 if a goal is missed: allocated within 0.5 %, reserved within 2 %, used within 200 MiB or 1 %."""
    real, dry = read(first), read(second)
    missed = 0
    print("%-24s %14s %9s %14s %9s %12s %10s" % ("program", "allocated MiB", "", "reserved MiB", "", "used MiB", ""))
    for name, a in real.items():
        b = dry.get(name, {"error": "not measured"})
        if "error" in a or "error" in b:
            missed += 1
            print("%-24s %s" % (name, a.get("error") or b.get("error")))
            continue
        shares = [100 * (b[k] / a[k] - 1) for k in ("allocated", "reserved")]
        more = b["used"] - a["used"]
        good = abs(shares[0]) <= 0.5 and abs(shares[1]) <= 2 and abs(more) <= max(200 * MIB, a["used"] // 100)
        missed += not good
        print("%-24s %14.1f %+8.3f%% %14.1f %+8.3f%% %12.1f %+10.1f%s" % (name, a["allocated"] / MIB, shares[0], a["reserved"] / MIB,
              shares[1], a["used"] / MIB, more / MIB, "" if good else "  missed"))
    print("%d programs, %d missed a goal" % (len(real), missed))
    return 1 if missed else 0


def main():
    words = sys.argv[1:]
    if words[:1] == ["one"]:
        sys.path.insert(0, HERE)
        return one(words[1])
    if words[:1] == ["measure"]:
        sys.path.insert(0, HERE)
        return measure(words[1:])
    if words[:1] == ["compare"] and len(words) == 3:
        return compare(*words[1:])
    return __doc__.strip()


if __name__ == "__main__":
    sys.exit(main())
