# SPDX-License-Identifier: Apache-2.0
# torch.gather with a column that does not exist.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch


def chosen(scores, actions):
    return torch.gather(scores, 1, actions)  # <- here


scores = torch.randn(32, 6, device="cuda")
actions = torch.randint(0, 6, (32, 1), device="cuda")
print(chosen(scores, actions).shape)
actions[31] = 6
values = chosen(scores, actions)
print((values * 2).sum().item())
