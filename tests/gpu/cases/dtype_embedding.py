# SPDX-License-Identifier: Apache-2.0
# An embedding wants whole numbers.
# expect: cause=dtype-mismatch certainty=certain,likely exit=1
# needs: torch
import torch
import torch.nn.functional as F

table = torch.ones(10, 4, device="cuda")
F.embedding(torch.tensor([1.0, 2.0], device="cuda"), table)  # <- here
