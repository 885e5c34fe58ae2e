# SPDX-License-Identifier: Apache-2.0
# The variables of the failing function that are tensors: names, types, shapes; in lists and dicts, too.
# expect: cause=oom-request-too-large exit=1
# tensors: batch["x"] float32 [32, 16] cuda:0; xs[0] float32 [2, 3] cuda:0; logits float32 [32, 10] cuda:0; labels int64 [32] cuda:0; scale float16 [] cpu
# needs: torch
import torch


def step(model, batch, xs):
    logits = model(batch["x"])
    labels = torch.zeros(32, dtype=torch.int64, device="cuda")
    scale = torch.tensor(2, dtype=torch.float16)
    return logits.new_empty(10 ** 12) + labels * scale  # <- here


weight = torch.nn.Parameter(torch.ones(2, 3, device="cuda"))
step(torch.nn.Linear(16, 10).cuda(), {"x": torch.randn(32, 16, device="cuda"), "not a name": torch.ones(1)}, [weight, 3])
