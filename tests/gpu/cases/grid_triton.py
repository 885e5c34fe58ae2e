# SPDX-License-Identifier: Apache-2.0
# A Triton kernel with 70,000 programs along y, launched from a function called by a lambda.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1 kernel=scale
# needs: torch triton
import torch
import triton
import triton.language as tl


@triton.jit
def scale(data, count, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(data + at, tl.load(data + at, mask=at < count) * 2, mask=at < count)


def launch(x, rows):
    scale[(1, rows)](x, x.numel(), BLOCK=16)  # <- here


x = torch.ones(70000 * 16, device="cuda")
run = lambda: launch(x, 70000)  # noqa: E731
run()
torch.cuda.synchronize()
