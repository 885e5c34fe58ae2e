# SPDX-License-Identifier: Apache-2.0
# The program catches the error, reports it in its own way and ends with status 7.
# expect: cause=oom-request-too-large exit=7
# needs: torch
import sys

import torch

try:
    torch.empty(1 << 42, device="cuda")  # <- here
except RuntimeError:
    print("giving up")
    sys.exit(7)
