# SPDX-License-Identifier: Apache-2.0
# torch.cuda.set_device with a number that one GPU does not have.
# expect: cause=device-ordinal-out-of-range certainty=certain,likely exit=1 code=101
# needs: torch
import torch


def main(local_rank):
    torch.cuda.set_device(local_rank)  # <- here
    print(torch.zeros(1, device="cuda"))


main(99)
