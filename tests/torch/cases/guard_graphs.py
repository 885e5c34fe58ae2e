# SPDX-License-Identifier: Apache-2.0
# PyTorch takes its workspaces back while a graph has them, as before each graph of torch.compile's: in guard mode they stay where they are.
# expect: cause=none exit=0
# options: --guard
# needs: torch
import torch

x, w = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        y = (x @ w).relu() @ w
torch.cuda.current_stream().wait_stream(side)
graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
for graph in graphs:
    with torch.cuda.graph(graph, stream=side):
        y = torch.addmm(w[0], x @ w, w).relu() @ w
torch.cuda.synchronize()
torch._C._cuda_clearCublasWorkspaces()
for _ in range(100):
    z = torch.randn(100, 100, device="cuda")
torch.cuda.empty_cache()
graphs.pop(0)
graphs[0].replay()
torch.cuda.synchronize()
print("ok")
