# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
"""Prefill a batch of long prompts, then decode all of them together."""
import argparse
import torch

WIDTH = 1024
ROWS_PER_MIB = 2 ** 20 // (4 * WIDTH)


class Prompt:
    def __init__(self, number, rows, state_rows):
        self.number, self.rows, self.state_rows = number, rows, state_rows
        self.state = None


class Engine:
    def __init__(self, scale):
        self.scale = scale

    def rows(self, mib):
        return int(mib * self.scale) * ROWS_PER_MIB

    def profile(self):
        """One pass at the largest supported size, as the launcher does, for the timings."""
        x = torch.empty(self.rows(5632), WIDTH, device="cuda")
        x.normal_()
        return x.shape[0]

    def prefill(self, prompts):
        scratch = []
        for p in prompts:
            work = torch.empty(p.rows, WIDTH, device="cuda")
            work.normal_()
            scratch.append(work)
            p.state = torch.empty(p.state_rows, WIDTH, device="cuda")  #@here
            p.state.copy_(work[: p.state_rows])
        return [p.number for p in prompts]

    def decode(self, prompts, mib):
        table = torch.empty(self.rows(mib), WIDTH, device="cuda")
        for p in prompts:
            table[: p.state_rows].add_(p.state)
        return table[0, 0].item()


def decode_sizes(turns):
    for t in range(turns):
        yield 120 + 40 * t if t < 7 else 2970


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=20)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    engine = Engine(args.scale)
    print("profiled rows", engine.profile())
    n, work_mib = (12, 440) if args.variant == "a" else (10, 530)
    prompts = [Prompt(i, engine.rows(work_mib), engine.rows(12)) for i in range(n)]
    print("prefilled", engine.prefill(prompts))
    for t, mib in enumerate(decode_sizes(args.turns)):
        print(t, mib, engine.decode(prompts, mib), flush=True)


main()
