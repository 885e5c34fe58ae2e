# SPDX-License-Identifier: Apache-2.0
# set_device(1) on a machine with one GPU, caught: a note.
# expect-note: cause=device-ordinal-out-of-range exit=0
# needs: torch single-GPU
# same-output
import torch

try:
    torch.cuda.set_device(1)  # <- note
except RuntimeError as error:
    print("no second GPU:", str(error).splitlines()[0])
print(torch.ones(2, device="cuda").sum().item())
