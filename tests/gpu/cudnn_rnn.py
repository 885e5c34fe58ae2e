# SPDX-License-Identifier: Apache-2.0
"""What cuDNN's recurrent layers need beside their tensors: random ones, the same on a GPU and on the simulated one.

    python3 cudnn_rnn.py [--count 40] [--seed 1] > real.jsonl            on a GPU
    python3 cudnn_rnn.py --large > real.jsonl                            on a GPU: large ones, one thing changed at a time
    cuwhy run --gpu sim:h200 python3 cudnn_rnn.py ... > sim.jsonl        without one
    python3 cudnn_rnn.py --compare real.jsonl sim.jsonl

The reserve is kept from the forward pass for the backward one; PyTorch returns it, so its size is exact. Workspaces are what a pass
takes at its peak beside what it returns. The rule is in src/sim/cudnn; shapes used to fit it must not be those that show its error.
"""
import argparse
import random
import statistics

from cudnn_measure import peak_beyond_result, print_rows, read_rows

PARTS = ("reserve", "forward", "backward", "inference")
MODES = ("LSTM", "GRU", "RNN")


def random_network(dice):
    return {
        "mode": dice.choice(("LSTM", "LSTM", "GRU", "RNN")),
        "dtype": dice.choice(("float32", "float32", "float16", "bfloat16")),
        "inputs": dice.choice((16, 40, 80, 128, 300, 512, 1024)),
        "hidden": dice.choice((32, 100, 128, 256, 512, 800, 1024)),
        "layers": dice.choice((1, 1, 2, 2, 3, 4)),
        "bidirectional": dice.random() < 0.4,
        "dropout": dice.choice((0.0, 0.0, 0.3)),
        "steps": dice.choice((1, 10, 35, 100, 250)),
        "batch": dice.choice((1, 8, 20, 32, 64, 128)),
        "packed": dice.random() < 0.25,
    }


def random_networks(count, seed):
    dice = random.Random(seed)
    return [random_network(dice) for _ in range(count)]


# As in tests/torch/programs_boundary.py, where the workspace decides which batch fits.
LARGE = {"mode": "LSTM", "dtype": "float32", "inputs": 512, "hidden": 1024, "layers": 2, "bidirectional": False, "dropout": 0.2,
         "steps": 512, "batch": 128, "packed": False}
CHANGES = {
    "batch": (16, 32, 64, 256, 320, 384, 448, 480, 512),
    "steps": (32, 64, 128, 256, 384, 768, 1024),
    "inputs": (128, 1024),
    "hidden": (256, 512, 768, 2048),
    "layers": (1, 3),
    "dropout": (0.0,),
    "bidirectional": (True,),
    "packed": (True,),
    "dtype": ("bfloat16",),
    "mode": ("GRU", "RNN"),
}


def large_networks():
    """One thing differs from LARGE in each, so that what a term of the rule grows with can be read off."""
    return [LARGE] + [dict(LARGE, **{name: value}) for name, values in CHANGES.items() for value in values]


def measure(torch, shape):
    dtype = getattr(torch, shape["dtype"])
    layer = getattr(torch.nn, shape["mode"])(
        shape["inputs"], shape["hidden"], shape["layers"], bidirectional=shape["bidirectional"],
        dropout=shape["dropout"] if shape["layers"] > 1 else 0.0, batch_first=False).to("cuda", dtype)
    x = torch.zeros(shape["steps"], shape["batch"], shape["inputs"], device="cuda", dtype=dtype, requires_grad=True)
    lengths = [max(1, shape["steps"] - i * shape["steps"] // shape["batch"]) for i in range(shape["batch"])]

    def forward():
        if shape["packed"]:
            return layer(torch.nn.utils.rnn.pack_padded_sequence(x, lengths))[0].data
        return layer(x)[0]

    found, kept = {}, []
    found["forward"], y = peak_beyond_result(torch, forward)
    node, seen = [y.grad_fn], set()
    while node:                 # the reserve is what the node of the backward pass saved
        one = node.pop()
        if one is None or one in seen:
            continue
        seen.add(one)
        if "CudnnRnn" in one.name():
            kept.append(one._saved_result3.numel() * one._saved_result3.element_size())
        node += [n for n, _ in one.next_functions]
    found["reserve"] = kept[0] if kept else None
    dy = torch.zeros_like(y)
    wanted = [x, *layer.parameters()]
    found["backward"], _ = peak_beyond_result(torch, lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True))
    del y, dy, _
    with torch.no_grad():
        found["inference"], _ = peak_beyond_result(torch, forward)
    return found


def compare(real_path, sim_path):
    """The error is given as a share of the whole that the card needed for it: reserve and workspace."""
    real, sim = read_rows(real_path), read_rows(sim_path)
    errors = {part: [] for part in PARTS}
    for key, row in real.items():
        if key not in sim:
            continue
        for part in PARTS:
            there, here = row["bytes"][part], sim[key]["bytes"][part]
            share = 100 * (here - there) / max(there, 1 << 20)
            errors[part].append(share)
            print(f"{key}  {part}: real {there / 2**20:.2f} sim {here / 2**20:.2f} MiB {share:+.1f} %")
    for part, shares in errors.items():
        if shares:
            within = sum(abs(s) <= 1 for s in shares)
            print(f"{part}: {len(shares)} networks, {within} within 1 %, median {statistics.median(map(abs, shares)):.1f} %, "
                  f"worst {max(shares, key=abs):+.1f} %")


def main():
    parser = argparse.ArgumentParser(description="memory of cuDNN's recurrent layers")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--large", action="store_true", help="instead of random ones, large ones that differ in one thing each")
    parser.add_argument("--compare", nargs=2, metavar=("REAL", "SIM"))
    options = parser.parse_args()
    if options.compare:
        compare(*options.compare)
    else:
        print_rows(large_networks() if options.large else random_networks(options.count, options.seed), "bytes", measure)


if __name__ == "__main__":
    main()
