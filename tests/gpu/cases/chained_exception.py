# SPDX-License-Identifier: Apache-2.0
# The CUDA error is wrapped in an exception of the program's own.
# expect: cause=oom-request-too-large exit=1
# needs: torch
import torch


class TrainingFailed(Exception):
    pass


def step():
    return torch.empty(1 << 42, device="cuda")  # <- here


try:
    step()
except RuntimeError as error:
    raise TrainingFailed("step 1") from error
