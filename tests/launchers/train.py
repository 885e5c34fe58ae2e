# SPDX-License-Identifier: Apache-2.0
"""A training that is only collectives, with PyTorch: train.py MODE. In rank 1 (CULPRIT) something goes wrong at step 12: `raises`, `absent` (it sits
in its data loader), `diverges` (another collective), `killed`. BACKEND: gloo, without GPUs, or nccl, on simulated ones."""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

mode, backend = sys.argv[1], os.environ.get("BACKEND", "gloo")
device = "cuda" if backend == "nccl" else "cpu"
if device == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend, timeout=datetime.timedelta(seconds=8))
rank, world = dist.get_rank(), dist.get_world_size()
t = torch.ones(64, device=device)
torch.ones(1, device="cuda:0")      # a rank that never uses CUDA is recorded only if an exception ends it


def load():
    time.sleep(600)


def dump(folder):
    """PyTorch's own record of its collectives."""
    time.sleep(1)
    with open(os.path.join(folder, "trace_rank_%d" % rank), "wb") as f:
        f.write(torch._C._distributed_c10d._dump_nccl_trace())
    time.sleep(1)
    os._exit(0)


def train():
    for step in range(1, 21):
        train_step(step)


def train_step(step):
    odd = rank == int(os.environ.get("CULPRIT", "1")) and step == 12
    if odd and mode == "raises":
        raise ValueError("bad batch")
    if odd and mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if odd and mode == "absent":
        if "DUMP" in os.environ:
            dump(os.environ["DUMP"])
        load()
    if odd and mode == "diverges":
        dist.all_gather_into_tensor(torch.ones(64 * world, device=device), t)
    else:
        dist.all_reduce(torch.ones(128, device=device) if odd and mode == "resized" else t)
    if step == 12 and "DUMP" in os.environ:
        dump(os.environ["DUMP"])
    if device == "cuda":
        torch.cuda.synchronize()


try:
    train()
except RuntimeError:
    if "DUMP" in os.environ:
        dump(os.environ["DUMP"])
    raise
