# SPDX-License-Identifier: Apache-2.0
# main() is guarded by a handler that prints the exception and exits: the failure ended the program, whatever the handler did on the GPU before.
# expect: cause=oom-request-too-large certainty=certain exit=3
# needs: torch
import sys
import traceback

import torch


def main():
    small = torch.ones(8, device="cuda")
    return small + torch.empty(1 << 40, device="cuda")  # <- here


try:
    main()
except Exception:
    traceback.print_exc()
    torch.zeros(8, device="cuda").add_(1)
    sys.exit(3)
