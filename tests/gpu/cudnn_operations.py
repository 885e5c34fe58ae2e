# SPDX-License-Identifier: Apache-2.0
"""Everything in PyTorch that calls cuDNN, forward and backward, once: on a GPU or on the simulated one. Prints what failed."""
import itertools
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

TYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


def layer(module, sizes, dtype, channels_last=False):
    """One layer and its gradients."""
    module, x = module.to("cuda", dtype), torch.randn(sizes, device="cuda", dtype=dtype)
    if channels_last:
        module, x = module.to(memory_format=LAYOUTS[x.dim()]), x.contiguous(memory_format=LAYOUTS[x.dim()])
    x.requires_grad_()
    module(x).sum().backward()
    assert x.grad.shape == x.shape


def layers(dtype):
    made = {
        "conv1d": lambda: layer(nn.Conv1d(16, 32, 5), (4, 16, 100), dtype),
        "transposed": lambda: layer(nn.ConvTranspose2d(16, 8, 4, 2, 1, 1), (4, 16, 16, 16), dtype),
        "grouped": lambda: layer(nn.Conv2d(16, 32, 3, groups=4), (4, 16, 32, 32), dtype),
        "depthwise": lambda: layer(nn.Conv2d(16, 16, 3, groups=16), (4, 16, 32, 32), dtype),
        "dilated": lambda: layer(nn.Conv2d(16, 16, 3, dilation=2), (4, 16, 32, 32), dtype),
    }
    for last in (False, True):
        made[f"conv2d {last}"] = lambda last=last: layer(nn.Conv2d(16, 32, 3, 2, 1), (4, 16, 32, 32), dtype, last)
        made[f"conv3d {last}"] = lambda last=last: layer(nn.Conv3d(8, 16, 3), (2, 8, 8, 16, 16), dtype, last)
        made[f"batch norm {last}"] = lambda last=last: layer(nn.BatchNorm2d(16), (8, 16, 32, 32), dtype, last)
    return made


def recurrent(kind, dtype, **settings):
    module = kind(32, 64, 2, **settings).to("cuda", dtype)
    module(torch.randn(10, 4, 32, device="cuda", dtype=dtype))[0].sum().backward()


def recurrents(dtype):
    return {
        "lstm": lambda: recurrent(nn.LSTM, dtype),
        "lstm, both ways, projected": lambda: recurrent(nn.LSTM, dtype, bidirectional=True, proj_size=16),
        "gru, dropout": lambda: recurrent(nn.GRU, dtype, dropout=0.1),
        "rnn, no bias": lambda: recurrent(nn.RNN, dtype, bias=False),
    }


def packed():
    sequences = [torch.randn(length, 16) for length in (9, 7, 3)]
    nn.LSTM(16, 16).cuda()(nn.utils.rnn.pack_sequence(sequences).cuda())[0].data.sum().backward()


def ctc(place):
    """Lengths as lists and labels on the host, or both on the GPU: two functions of cuDNN."""
    scores = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
    labels = torch.randint(1, 20, (40,), dtype=torch.int32).to(place)
    lengths = [[50] * 4, [10] * 4]
    if place == "cuda":
        lengths = [torch.tensor(length, dtype=torch.int32, device="cuda") for length in lengths]
    F.ctc_loss(scores.log_softmax(2), labels, *lengths).backward()


def sample():
    x, theta = torch.randn(2, 3, 8, 8, device="cuda", requires_grad=True), torch.randn(2, 2, 3, device="cuda", requires_grad=True)
    F.grid_sample(x, F.affine_grid(theta, (2, 3, 8, 8), align_corners=True), align_corners=True).sum().backward()


def fused():
    x, w, bias = (torch.randn(sizes, device="cuda") for sizes in ((2, 8, 16, 16), (8, 8, 3, 3), (8,)))
    torch.cudnn_convolution_relu(x, w, bias, [1, 1], [1, 1], [1, 1], 1)
    torch.cudnn_convolution_add_relu(x, w, x, 1.0, bias, [1, 1], [1, 1], [1, 1], 1)


def attention(dtype, causal, dropout, mask):
    q, k, v = (torch.randn(2, 8, 256, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    bias = torch.zeros(2, 1, 256, 256, device="cuda", dtype=dtype) if mask else None
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal, dropout_p=dropout).sum().backward()


def others():
    made = {"packed": packed, "ctc on the host": lambda: ctc("cpu"), "ctc on the GPU": lambda: ctc("cuda"), "grid": sample, "fused": fused}
    for dtype, dropout in itertools.product((torch.bfloat16, torch.float16), (0.0, 0.125)):
        for causal, mask in ((False, False), (True, False), (False, True)):
            made[f"attention {dtype} {causal} {dropout} {mask}"] = lambda a=(dtype, causal, dropout, mask): attention(*a)
    return made


def run(name, function):
    try:
        function()
        torch.cuda.synchronize()
        return True
    except RuntimeError as error:
        print(f"not ok - {name}: {str(error).splitlines()[0]}", flush=True)
        return False


def main():
    tests = {}
    for dtype in TYPES:
        for name, function in {**layers(dtype), **recurrents(dtype)}.items():
            tests[f"{name} {dtype}"] = function
    tests.update(others())
    passed = sum(run(name, function) for name, function in tests.items())
    for setting in ("benchmark", "deterministic"):
        setattr(torch.backends.cudnn, setting, True)
        passed += run(setting, lambda: layer(nn.Conv2d(16, 33, 3), (4, 16, 32, 32), torch.float32))
    torch.backends.cudnn.allow_tf32 = False
    passed += run("no TF32", lambda: layer(nn.Conv2d(16, 34, 3), (4, 16, 32, 32), torch.float32))
    print(f"{passed} of {len(tests) + 3} operations ran")
    return passed != len(tests) + 3


if __name__ == "__main__":
    sys.exit(main())
