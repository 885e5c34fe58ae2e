# SPDX-License-Identifier: Apache-2.0
# A multiprocessing child made by fork uses CUDA after its parent did; the parent ends with 0.
# expect: cause=fork-after-init certainty=certain,likely exit=0
# needs: torch
import multiprocessing

import torch


def work(index):
    print(torch.ones(index + 1, device="cuda").sum())  # <- here


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    child = multiprocessing.get_context("fork").Process(target=work, args=(3,))
    child.start()
    child.join()
    print("child ended with", child.exitcode)
