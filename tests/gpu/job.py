#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real GPU: job.py [CUWHY]. Two ranks share one GPU over gloo; one faults, or runs out of memory, and must be named with its
line. Then NCCL itself, one rank: its calls must be in the job folder, with lines, and cost little. Needs PyTorch, no network."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
CUWHY = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "build", "cuwhy"))
RANKS = textwrap.dedent("""
    import sys, time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    rank, mode = dist.get_rank(), sys.argv[1]
    x = torch.ones(1 << 20, device="cuda:0")
    for step in range(5):
        t = torch.ones(4)
        dist.all_reduce(t)
    if rank == 1 and mode == "fault":
        index = torch.full((64,), 1 << 40, device="cuda:0")
        x[index] = 1                                                # FAULT
        torch.cuda.synchronize()
    if rank == 1 and mode == "oom":
        y = torch.empty(1 << 50, dtype=torch.uint8, device="cuda:0")    # OOM
    t = torch.ones(4)
    dist.all_reduce(t)
    time.sleep(5)
""")
NCCL = textwrap.dedent("""
    import os, socket, time, torch, torch.distributed as dist
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    t = torch.ones(1024, device="cuda")
    for i in range(200):
        dist.all_reduce(t)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(20000):
        dist.all_reduce(t)                                          # CALL
    torch.cuda.synchronize()
    print("%.2f" % ((time.perf_counter() - begin) / 20000 * 1e6))
    dist.destroy_process_group()
""")


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def line_of(text, mark):
    return 1 + next(i for i, line in enumerate(text.split("\n")) if "# " + mark in line)


def explain(folder):
    return json.loads(subprocess.run([CUWHY, "explain", folder, "--json"], stdout=subprocess.PIPE, check=False).stdout)


def try_mode(folder, mode, mark):
    program, job = write(folder, "ranks.py", RANKS), os.path.join(folder, "job-" + mode)
    print("# two ranks on one GPU, gloo: %s" % mode, flush=True)
    subprocess.run([CUWHY, "run", "--job", job, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", program, mode],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=300)
    subprocess.run([CUWHY, "explain", job], check=False)
    got = explain(job)
    ok = [x["rank"] for x in got["first"]] == [1] and "ranks.py:%d" % line_of(RANKS, mark) in (got["first"][0]["at"] or "")
    print("%s - %s: %s at %s" % ("ok" if ok else "not ok", mode, got["title"], got["first"][0]["at"] if got["first"] else None), flush=True)
    return ok


def try_nccl(folder):
    program, job = write(folder, "nccl.py", NCCL), os.path.join(folder, "job-nccl")
    print("# NCCL, one rank", flush=True)
    plain = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, text=True, check=False, timeout=300).stdout.strip()
    under = subprocess.run([CUWHY, "run", "--job", job, sys.executable, program], stdout=subprocess.PIPE, text=True, check=False, timeout=300).stdout.strip()
    comms = []
    for name in glob.glob(os.path.join(job, "*", "*", "*.json")):
        with open(name, encoding="utf-8") as f:
            comms += json.load(f).get("comms", [])
    ok = bool(comms) and comms[0]["called"] == 20200 and comms[0]["calls"][-1].get("line") == "nccl.py:%d" % line_of(NCCL, "CALL")
    print("%s - %s" % ("ok" if ok else "not ok", comms[0]["calls"][-1] if comms else "no communicator was recorded"))
    print("all_reduce of one rank: %s us without, %s us with cuwhy" % (plain, under), flush=True)
    return ok


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUWHY_DIR"] = os.path.join(folder, "state")
        results = [try_mode(folder, "fault", "FAULT"), try_mode(folder, "oom", "OOM"), try_nccl(folder)]
    print("%d of %d as expected" % (sum(results), len(results)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
