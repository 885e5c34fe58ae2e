#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps that ProcessGroupNCCL's flight recorder wrote over the stand-in NCCL, judged by cuwhy and by PyTorch's own analyzer
(torch.distributed.flight_recorder): flight.py CUWHY [RANKS]. Needs the PyTorch of `make check-torch`."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"absent": "absent", "diverges": "diverged", "resized": "diverged"}


def torch_folder():
    found = [f for f in [os.environ.get("CUWHY_TORCH", "")] + glob.glob(os.path.expanduser("~/.cache/cuwhy/torch/*")) if os.path.isdir(os.path.join(f, "torch"))]
    return found[-1] if found else None


def theirs(cuwhy, folder, env):
    """The ranks that PyTorch's analyzer blames."""
    done = subprocess.run([cuwhy, "run", "--gpu", "sim:h200", sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", "-p", "trace_rank_", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False)
    missing = re.findall(r"missing ranks: \{([\d, ]+)\}", done.stdout)
    culprits = re.findall(r"Culprit rank (\d+); Error type: (?:COLLECTIVE_TYPE|SIZE_OR_SYNTAX)_MISMATCH", done.stdout)
    return sorted({int(n) for text in missing for n in text.split(",")} | {int(n) for n in culprits})


def main():
    cuwhy, ranks = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "4"
    torch = torch_folder()
    if not torch:
        print("skip - flight.py: no PyTorch in ~/.cache/cuwhy/torch: make check-torch installs one")
        return 77
    wrong = 0
    for mode, how in MODES.items():
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, PYTHONPATH=torch, BACKEND="nccl", DUMP=folder, TORCH_FR_BUFFER_SIZE="1000", CUWHY_DIR=os.path.join(folder, ".state"))
            subprocess.run([cuwhy, "run", "--gpu", "sim:h200,devices=" + ranks, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks,
                            os.path.join(HERE, "train.py"), mode], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False, timeout=400)
            files = sorted(glob.glob(os.path.join(folder, "trace_rank_*")))
            done = subprocess.run([cuwhy, "explain", "--json"] + files, stdout=subprocess.PIPE, check=False)
            got = json.loads(done.stdout)
            ours, other = sorted(x["rank"] for x in got["first"]), theirs(cuwhy, folder, env)
        # where ranks differ, PyTorch's analyzer takes the call of one rank for the expected one: it may blame all but the odd one
        seen = other in ([1], [r for r in range(int(ranks)) if r != 1] if how == "diverged" else [1])
        ok = ours == [1] and seen and got["how"] == how
        wrong += not ok
        print("%s - %s, %d dumps: cuwhy blames %s (%s), PyTorch's analyzer %s" % ("ok" if ok else "not ok", mode, len(files), ours, got["how"], other), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
