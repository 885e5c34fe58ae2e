# SPDX-License-Identifier: Apache-2.0
# Four ranks of one job on the only GPU there is. (With more GPUs it would be oom-rank0-checkpoint-load.)
# expect: cause=oom-other-process certainty=certain,likely exit=1
# needs: torch single-GPU
# alone
import os
import subprocess
import sys
import time

import torch


def load():
    """Each takes a third of the card: the last one finds nothing left."""
    _, total = torch.cuda.mem_get_info(0)
    return torch.empty(total // 3 - (1 << 30), dtype=torch.uint8, device="cuda:0")  # <- here


if "LOCAL_RANK" in os.environ:
    rank = int(os.environ["LOCAL_RANK"])
    weights = load()
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit(0)

ranks = []
for rank in range(4):
    env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="4")
    ranks.append(subprocess.Popen([sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    ranks[-1].stdout.readline()
for process in ranks:
    process.stdin.close()
sys.exit(max(process.wait() for process in ranks))
