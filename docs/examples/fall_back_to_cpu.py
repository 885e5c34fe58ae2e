# SPDX-License-Identifier: Apache-2.0
# All distances between points do not fit on the card, and no smaller batch would help: the program goes on with the CPU.
# expect-note: cause=oom-request-too-large|oom-capacity exit=0
# needs: torch
# alone
import cuwhy
import torch

_, total = torch.cuda.mem_get_info()
points = torch.rand(int((total / 12) ** 0.5 * 1.1), 3)


def nearest_on_gpu():
    near = points.cuda()
    return (near[:, None] - near).norm(dim=2).fill_diagonal_(9).argmin(1).cpu()


def nearest_on_cpu(rows=512):
    return torch.cat([torch.cdist(part, points).topk(2, largest=False).indices[:, 1] for part in points.split(rows)])


try:
    where, nearest = "GPU", nearest_on_gpu
    found = nearest()
except torch.OutOfMemoryError as e:
    verdict = cuwhy.explain(e, batch=1)
    print("cause: %s, a retry helps: %s" % (verdict.cause, verdict.retry), flush=True)
    if verdict.retry:
        raise
    where, nearest = "CPU", nearest_on_cpu
if where == "CPU":      # outside of except: until there, the exception holds the tensors on the GPU
    found = nearest()
print("the neighbors of %d points, by the %s" % (len(found), where))
