# SPDX-License-Identifier: Apache-2.0
# A synchronization inside a capture.
# expect: cause=graph-capture-illegal-op certainty=certain,likely exit=1
# needs: torch
import torch


def timed(function, *args):
    result = function(*args)
    torch.cuda.synchronize()  # <- here
    return result


x = torch.ones(4, device="cuda")
timed(torch.mul, x, 2)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    timed(torch.mul, x, 2)
