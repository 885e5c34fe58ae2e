# SPDX-License-Identifier: Apache-2.0
# One request of 4 TiB.
# expect: cause=oom-request-too-large certainty=certain,likely exit=1
# needs: torch
import torch


def make(*shape):
    return torch.empty(shape, device="cuda")  # <- here


def main():
    side = 1024
    return make(side, side, side, side)


main()
