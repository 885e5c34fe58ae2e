# SPDX-License-Identifier: Apache-2.0
# torch.multiprocessing.spawn, as distributed programs start their ranks.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1
# needs: torch
# uses: helpers/pooling.py
import torch
import torch.multiprocessing as mp
from helpers.pooling import Model


def rank(index):
    Model().cuda()(torch.zeros(70000, 1, 4, 4, device="cuda"))


if __name__ == "__main__":
    mp.spawn(rank, nprocs=1)
