# SPDX-License-Identifier: Apache-2.0
"""What cuDNN's convolutions need as workspace: random ones, the same on a GPU and on the simulated one.

    python3 cudnn_workspaces.py [--count 30] [--seed 1] > real.jsonl            on a GPU
    cuwhy run --gpu sim:h200 python3 cudnn_workspaces.py ... > sim.jsonl         without one
    python3 cudnn_workspaces.py --compare real.jsonl sim.jsonl

The constants of the model are in src/sim/cudnn/sizes.h. Shapes used to fit them must not be those that show its error: use another seed.
"""
import argparse
import random
import statistics
import sys

from cudnn_measure import peak_beyond_result, print_rows, read_rows

PASSES = ("fprop", "dgrad", "wgrad")
CHANNELS = (3, 8, 16, 24, 48, 64, 96, 100, 128, 192, 256, 384, 512)
SIZES = {1: (64, 250, 1000, 4096), 2: (7, 14, 28, 56, 75, 112, 224), 3: (8, 16, 24, 32)}
BYTES_MAX = 1 << 30  # of input and output in float


def random_shape(dice):
    """One convolution; about half of them channels last, one in six grouped."""
    dims = dice.choice((1, 2, 2, 2, 2, 3))
    groups = dice.choice((1, 1, 1, 1, 1, 4))
    kernel = dice.choice((1, 1, 3, 3, 3, 5, 7))
    shape = {
        "dims": dims,
        "dtype": dice.choice(("float32", "float32", "bfloat16", "float16")),
        "channels_last": dims > 1 and dice.random() < 0.5,
        "batch": dice.choice((1, 4, 8, 16, 32, 64)),
        "groups": groups,
        "inputs": dice.choice([c for c in CHANNELS if c % groups == 0]),
        "outputs": dice.choice([c for c in CHANNELS if c % groups == 0]),
        "size": dice.choice([s for s in SIZES[dims] if s >= kernel]),
        "kernel": kernel,
        "stride": dice.choice((1, 1, 1, 2)),
        "padding": dice.choice((0, kernel // 2)),
        "dilation": dice.choice((1, 1, 1, 1, 2)) if kernel == 3 else 1,
    }
    shape["output_size"] = (
        shape["size"] + 2 * shape["padding"] - shape["dilation"] * (kernel - 1) - 1
    ) // shape["stride"] + 1
    return shape


def elements(shape):
    dims = shape["dims"]
    inputs = shape["batch"] * shape["inputs"] * shape["size"] ** dims
    outputs = shape["batch"] * shape["outputs"] * shape["output_size"] ** dims
    filters = shape["outputs"] * shape["inputs"] // shape["groups"] * shape["kernel"] ** dims
    return {"x": inputs, "w": filters, "y": outputs}


def random_shapes(count, seed):
    dice = random.Random(seed)
    shapes = []
    while len(shapes) < count:
        shape = random_shape(dice)
        sizes = elements(shape)
        if shape["output_size"] > 0 and 4 * (sizes["x"] + sizes["y"]) <= BYTES_MAX:
            shapes.append(shape)
    return shapes


def measure(torch, shape):
    dims, dtype = shape["dims"], getattr(torch, shape["dtype"])
    layout = {False: torch.contiguous_format, True: {2: torch.channels_last, 3: torch.channels_last_3d}.get(dims)}

    def tensor(*sizes):
        made = torch.zeros(*sizes, dtype=dtype, device="cuda")
        return made.contiguous(memory_format=layout[shape["channels_last"]])

    x = tensor(shape["batch"], shape["inputs"], *[shape["size"]] * dims)
    w = tensor(shape["outputs"], shape["inputs"] // shape["groups"], *[shape["kernel"]] * dims)
    dy = tensor(shape["batch"], shape["outputs"], *[shape["output_size"]] * dims)
    settings = ([shape["stride"]] * dims, [shape["padding"]] * dims, [shape["dilation"]] * dims, False, [0] * dims, shape["groups"])

    def forward():
        return torch.ops.aten.convolution(x, w, None, *settings)

    def backward(*wanted):
        return torch.ops.aten.convolution_backward(dy, x, w, None, *settings, [*wanted, False])

    calls = {"fprop": forward, "dgrad": lambda: backward(True, False), "wgrad": lambda: backward(False, True)}
    return {name: peak_beyond_result(torch, calls[name])[0] for name in PASSES}


def describe(shape):
    layout = "last" if shape["channels_last"] else "first"
    return (
        f"{shape['dims']}d {shape['dtype']:8} {layout:5} n{shape['batch']} c{shape['inputs']}>{shape['outputs']} g{shape['groups']} "
        f"{shape['size']} k{shape['kernel']} s{shape['stride']} p{shape['padding']} d{shape['dilation']}"
    )


def compare(real_path, sim_path):
    """The error of a workspace is given as a share of the tensors of its convolution: that is what decides whether a program fits."""
    real, sim = read_rows(real_path), read_rows(sim_path)
    shared = [key for key in real if key in sim]
    errors = {name: [] for name in PASSES}
    for key in shared:
        shape = real[key]["shape"]
        total = sum(elements(shape).values()) * (4 if shape["dtype"] == "float32" else 2)
        for name in PASSES:
            there, here = real[key]["workspace"][name], sim[key]["workspace"][name]
            share = 100 * (here - there) / total
            errors[name].append(share)
            print(f"{describe(shape):60} {name} real {there / 2**20:9.2f} sim {here / 2**20:9.2f} MiB {share:+8.1f} %")
    for name in PASSES if shared else ():
        typical = statistics.median(abs(e) for e in errors[name])
        worst = max(errors[name], key=abs)
        exact = sum(abs(e) < 1 for e in errors[name])
        print(f"{name}: {len(shared)} shapes, {exact} within 1 % of the tensors, median {typical:.1f} %, worst {worst:+.1f} %")
    return 0 if shared and len(shared) == len(real) == len(sim) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compare", nargs=2, metavar=("REAL", "SIM"))
    options = parser.parse_args()
    if options.compare:
        return compare(*options.compare)
    print_rows(random_shapes(options.count, options.seed), "workspace", measure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
