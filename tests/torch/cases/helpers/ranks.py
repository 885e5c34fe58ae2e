# SPDX-License-Identifier: Apache-2.0
"""Ranks of one job, each with a simulated GPU of its own, as torchrun starts them."""
import os
import subprocess
import sys
import tempfile

# After an error PyTorch's watchdog waits for dumps that nobody makes here: four times this long, a minute by default.
ENDS_SOON = {"TORCH_NCCL_DUMP_ON_TIMEOUT": "0", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "250"}


def join(count):
    """In the process that the test starts: starts the program once for each rank, and ends. In a rank: its number."""
    if "RANK" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, sys.argv[0], "file://%s/meet" % folder],
                                      env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), **ENDS_SOON))
                     for rank in range(count)]
            sys.exit(1 if any([rank.wait() for rank in ranks]) else 0)
    import torch
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", init_method=sys.argv[1], rank=rank, world_size=count)
    return rank
