# SPDX-License-Identifier: Apache-2.0
# A Triton kernel looks up rows of a table. One caller passes the row stride in bytes, not in elements.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 here=21 code=700 kernel=lookup
# needs: torch triton
import torch
import triton
import triton.language as tl

ROWS, WIDTH = 400_000, 1024


@triton.jit
def lookup(out, table, ids, stride, WIDTH: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, WIDTH)
    number = tl.load(ids + row)
    tl.store(out + row * WIDTH + column, tl.load(table + number * stride + column))


def embed(table, ids, stride):
    out = torch.empty(len(ids), WIDTH, device="cuda")
    lookup[(len(ids),)](out, table, ids, stride, WIDTH=WIDTH)
    return out


table = torch.randn(ROWS, WIDTH, device="cuda")
words = torch.arange(0, ROWS, 100, device="cuda")
head = torch.nn.Linear(WIDTH, 16).cuda()

print("first batch", head(embed(table, words, table.stride(0))).mean().item())
features = embed(table, words, table.stride(0) * table.element_size())
scores = head(features)
print("second batch", scores.mean().item())
