# SPDX-License-Identifier: Apache-2.0
# CUDA_VISIBLE_DEVICES names a device that does not exist.
# expect: cause=visible-devices-wrong certainty=certain,likely exit=1
# needs: torch
# env: CUDA_VISIBLE_DEVICES=99
import torch


def main():
    x = torch.zeros(3, device="cuda")  # <- here
    print(x.sum())


main()
