# SPDX-License-Identifier: Apache-2.0
# The program catches the assert, goes on, meets the same error again and ends with a status of its own.
# expect: cause=label-out-of-range certainty=certain,likely exit=5 code=710
# needs: torch
import sys

import torch
import torch.nn.functional as F


def attempt(name, function):
    try:
        print(name, function())
    except RuntimeError as error:
        print(name, "raised", "device-side assert" in str(error))


logits = torch.randn(8, 4, device="cuda")
loss = F.cross_entropy(logits, torch.full((8,), 4, device="cuda"))  # <- here
attempt("item", loss.item)
attempt("ones", lambda: torch.ones(4, device="cuda").sum().item())
attempt("synchronize", torch.cuda.synchronize)
attempt("copy", lambda: torch.arange(3).cuda().tolist())
sys.exit(5)
