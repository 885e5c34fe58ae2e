# SPDX-License-Identifier: Apache-2.0
# CUDA_VISIBLE_DEVICES holds the UUID of another machine.
# expect: cause=visible-devices-wrong certainty=certain,likely exit=1
# needs: torch
# env: CUDA_VISIBLE_DEVICES=GPU-deadbeef
import torch


def main():
    x = torch.zeros(3, device="cuda")  # <- here
    print(x.sum())


main()
