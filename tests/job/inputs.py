# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own files of a job: inputs.py CUWHY. Flight recorder dumps, torchelastic's error files and logs, alone and with a job folder."""
import json
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import histories  # noqa: E402
from world import World  # noqa: E402

CUWHY = os.path.abspath(sys.argv[1])
wrong = 0


def dump(calls, done):
    entries = [{"frames": [{"name": "all_reduce", "filename": "/x/torch/distributed/distributed_c10d.py", "line": 1},
                           {"name": "step", "filename": "/home/a/train.py", "line": 60}],
                "record_id": i, "process_group": ("0", "default_pg"), "collective_seq_id": i, "is_p2p": False, "profiling_name": "nccl:" + op,
                "input_sizes": [[size, 2]], "input_dtypes": ["Float"], "state": "completed" if i <= done else "scheduled"}
               for i, (op, size) in enumerate(calls, 1)]
    return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}, "comm_lib_version": "2.27.3", "entries": entries}


def ask(*words):
    done = subprocess.run([CUWHY, "explain", "--json", *words], capture_output=True, check=False, timeout=300)
    return json.loads(done.stdout)


def check(name, got, first, how):
    global wrong
    found = (sorted(x["rank"] for x in got.get("first", [])), got.get("how"))
    wrong += found != (first, how)
    print("%s %s%s" % ("ok  " if found == (first, how) else "FAIL", name, "" if found == (first, how) else ": %s" % (found,)), flush=True)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def flight(folder):
    usual = [("all_reduce", 64)] * 5
    stories = {"absent": ([usual, usual[:4], usual], [4, 4, 4], [1], "absent"),
               "diverged": ([usual, usual, usual[:4] + [("all_gather", 64)]], [4, 4, 4], [2], "diverged"),
               "resized": ([usual[:4] + [("all_reduce", 32)], usual, usual], [4, 4, 4], [0], "diverged"),
               "alone": ([usual[:4], usual, usual[:4]], [4, 4, 4], [0, 1, 2], "absent"),
               "fine": ([usual] * 3, [5, 5, 5], [], "none")}
    for name, (calls, done, first, how) in stories.items():
        for kind, pack in (("pickle", lambda d: pickle.dumps(d, 2)), ("pickle4", lambda d: pickle.dumps(d, 4)), ("json", lambda d: json.dumps(d).encode())):
            where = os.path.join(folder, name + "-" + kind)
            for rank in range(3):
                write(os.path.join(where, "nccl_trace_rank_%d" % rank), pack(dump(calls[rank], done[rank])))
            check("flight recorder, %s, %s" % (kind, name), ask(where), first, how)


def elastic(folder):
    def error(rank, message, second):
        write(os.path.join(folder, "attempt_0", str(rank), "error.json"),
              json.dumps({"message": {"message": message, "extraInfo": {"py_callstack": "Traceback", "timestamp": str(1794866885 + second)}}}).encode())
    error(2, "ValueError: bad batch", 0)
    error(0, "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0", 1)
    check("torchelastic's error files", ask(os.path.join(folder, "attempt_0")), [2], "failed")
    error(1, "KeyError: 'x'", 0)
    check("torchelastic, two in one second", ask(os.path.join(folder, "attempt_0")), [1, 2], "failed")


def joined(folder):
    """The files of a job say that ranks lost a peer; the log of the rank without a file says why."""
    job = os.path.join(folder, "job")
    w = World(3, ranks=8, per_node=4)
    histories.fault_everybody_hurt(w)
    odd = next(r for r in w.ranks if r.extra.get("own"))
    odd.lost_file = True
    w.write(job)
    check("a job folder without the rank", ask(job), [], "missing")
    log = os.path.join(folder, "rank_%d.log" % odd.number)
    write(log, b'Traceback (most recent call last):\n  File "train.py", line 60, in <module>\n    loss.backward()\n'
               b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.05 GiB is free.\n")
    got = ask(job, log)
    check("a job folder with its log", got, [odd.number], "failed")


with tempfile.TemporaryDirectory() as top:
    flight(os.path.join(top, "flight"))
    elastic(os.path.join(top, "elastic"))
    joined(os.path.join(top, "joined"))
sys.exit(1 if wrong else 0)
