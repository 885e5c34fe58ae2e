# SPDX-License-Identifier: Apache-2.0
# Class labels as floating-point numbers of the wrong rank.
# expect: cause=dtype-mismatch,shape-mismatch exit=1
# needs: torch
import torch
import torch.nn.functional as F

logits = torch.ones(4, 10, device="cuda")
labels = torch.zeros(4, device="cuda")
F.nll_loss(F.log_softmax(logits, 1), labels)  # <- here
