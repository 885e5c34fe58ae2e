# SPDX-License-Identifier: Apache-2.0
# A spawned child may use CUDA whatever its parent did, and a forked one may leave it alone.
# expect-silent: exit=0
# needs: torch
# same-output
import multiprocessing
import os

import torch


def work(index):
    print(torch.ones(index + 1, device="cuda").sum().item(), flush=True)


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    pid = os.fork()
    if pid == 0:
        os._exit(int(torch.ones(2).sum().item()) - 2)
    os.waitpid(pid, 0)
    child = multiprocessing.get_context("spawn").Process(target=work, args=(3,))
    child.start()
    child.join()
    print("child ended with", child.exitcode)
