# SPDX-License-Identifier: Apache-2.0
# A spawned child fails; its parent says so with its own status.
# expect: cause=shape-mismatch certainty=certain,likely exit=3 function=work
# needs: torch
import multiprocessing
import sys

import torch


def work(rows):
    a = torch.ones(rows, 7, device="cuda")
    print((a @ torch.ones(6, 2, device="cuda")).shape)  # <- here


if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work, args=(3,))
    child.start()
    child.join()
    sys.exit(3 if child.exitcode else 0)
