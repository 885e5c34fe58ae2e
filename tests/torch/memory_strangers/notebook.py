# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""A notebook, run cell by cell."""
import torch
import torch.nn as nn

Out = {}


def run_cell(source, namespace):
    value = eval(compile(source, "<cell %d>" % (len(Out) + 1), "eval"), namespace)
    Out[len(Out) + 1] = value  #@here
    return value


def load_images(count=96):  #@scale
    return torch.rand(count, 3, 256, 256, device="cuda")  #@here


def predict(images):
    with torch.no_grad():
        return net(images)  #@here


net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1)).cuda()
session = {"net": net, "predict": predict, "load_images": load_images}
for attempt in range(500):
    session["images"] = load_images()
    run_cell("predict(images)", session)  #@here
    run_cell("predict(images * 0.5 + 0.25)", session)  #@here
