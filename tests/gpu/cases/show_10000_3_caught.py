# SPDX-License-Identifier: Apache-2.0
# A 10000^3 tensor (4 TB), caught as RuntimeError: a note.
# expect-note: cause=oom-request-too-large exit=0
# needs: torch
# same-output
import torch


def attempt():
    return torch.zeros(10000, 10000, 10000, device="cuda")  # <- note


try:
    attempt()
except RuntimeError as error:
    print(type(error).__name__)
