#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what cuwhy says about the tensor behind an illegal access of one of PyTorch's own kernels what the program knows?

    tests/gpu/index.py [--build build] [--programs 30] [--seed 1] [-j 10] [--python PYTHON] [--artifacts DIR] [name…]

Runs random programs under `cuwhy run --guard`: a tensor that was made from memory too small for it is used by an elementwise
kernel (with and without gaps, two and three operands, casts), a copy, index_select, embedding, x[i], gather, scatter, take, a sum or cat; or the tensor with the
indices is. Sizes, strides, types and offsets are random. The program prints what it knows: how many elements there are from the tensor's
pointer on, how large one is and, where it is known which kernel is used, sizes and strides. Each thing that the verdict says must agree; what it does not say is
counted. A wrong one fails. Without a GPU everything is skipped, with a message. A name is part of a program's name.
"""
import json
import os
import random
import re
import subprocess
import sys
import time

import planted

LIMIT = 200     # seconds for one program

PROGRAM = """
import json, torch
torch.manual_seed({seed})
kept = []
class Memory:
    def __init__(self, owner, elements):
        self.__cuda_array_interface__ = {{"shape": (elements,), "typestr": "<i%d" % owner.element_size(), "data": (owner.data_ptr(), False), "version": 2}}
def short(elements, shape, dtype, stride=None, offset=0, below=None, view=False):
    # a tensor over memory for this many elements, which is not enough
    if stride is None:
        stride = [1]
        for size in shape[:0:-1]:
            stride.insert(0, stride[0] * size)
    owner = torch.ones(elements, device="cuda", dtype=dtype) if below is None else torch.arange(elements, device="cuda", dtype=dtype) % below
    kept.append(owner)
    all_ = offset + sum((n - 1) * s for n, s in zip(shape, stride)) + 1
    x = torch.as_tensor(Memory(owner, all_), device="cuda").view(dtype).as_strided(shape, stride, offset)
    torch.cuda.synchronize()
    print("TRUTH " + json.dumps(dict(view=view, bytes=x.element_size(), room=elements - offset, shape=list(shape), stride=list(stride))), flush=True)
    return x
def ids(limit, *shape, dtype=torch.int64):
    return torch.arange(torch.Size(shape).numel(), device="cuda", dtype=dtype).reshape(shape) % limit
torch.ones(1, device="cuda").exp()
ftype, itype, other = {ftype}, {itype}, {other}
{work}
torch.cuda.synchronize()
"""
# With view=True it is known which sizes and strides the kernel gets.
FLAT = "x = short({few}, ({n},), ftype, view=True)\n"
GAPS = "x = short({few2}, ({rows}, {cols}), ftype, ({pitch}, 1), view=True)\n"
TABLE = "x = short({few2}, ({rows}, {pitch}), ftype)\n"
OTHER = "torch.ones(({rows}, {cols}), device='cuda', dtype=ftype)"
WORK = {
    "flat": FLAT + "y = {unary}",
    "flat-two": FLAT + "y = torch.ones({n}, device='cuda', dtype=ftype) * x",
    "flat-cast": FLAT + "y = x.to(other)",
    "flat-store": FLAT + "x.fill_(2)",
    "flat-offset": "x = short({few}, ({n},), ftype, offset={offset}, view=True)\ny = {unary}",
    "gaps": "x = short({few2}, ({rows}, {cols}), ftype, ({pitch}, 1), {offset}, view=True)\ny = {unary}",
    "gaps-3d": "x = short({few3}, ({deep}, {rows}, {cols}), ftype, ({rows} * {pitch} * 2, {pitch}, 1), view=True)\ny = {unary}",
    "gaps-two": GAPS + "y = " + OTHER + " + x",
    "gaps-where": GAPS + "y = torch.where(torch.ones(({rows}, {cols}), device='cuda', dtype=torch.bool), x, " + OTHER + ")",
    "transposed": "x = short({few2}, ({rows}, {pitch}), ftype, view=True)\ny = x.t().contiguous()",
    "gaps-cast": GAPS + "y = x.to(other)",
    "index": TABLE + "y = x[ids({rows}, {count})]",
    "index-1": TABLE + "y = x[:, ids({pitch}, {count})]",
    "index_select": TABLE + "y = x.index_select({dim}, ids(x.shape[{dim}], {count}, dtype=itype))",
    "embedding": TABLE + "y = torch.nn.functional.embedding(ids({rows}, {rows}), x)",
    "gather": TABLE + "y = x.gather(1, ids({pitch}, {rows}, 7))",
    "scatter": TABLE + "y = torch.zeros(({rows}, {pitch} + 9), device='cuda', dtype=ftype).scatter_(1, ids({pitch}, {rows}, {pitch}), x)",
    "take": "x = short({few}, ({n},), ftype)\ny = x.take(ids({n}, {n}))",
    "sum": TABLE + "y = x.sum({dim})",
    "cat": TABLE + "y = torch.cat((x, torch.ones((3, {pitch}), device='cuda', dtype=ftype)))",
    "ids": "table = torch.ones(({rows}, {pitch}), device='cuda')\nx = short({few}, ({n},), torch.int64, below={rows})\ny = table[x]",
    "ids-select": "table = torch.ones(({rows}, {pitch}), device='cuda')\nx = short({few}, ({n},), itype, below={rows})\ny = table.index_select(0, x)",
    "ids-gather": "table = torch.ones(({rows}, {pitch}), device='cuda')\n"
                  "x = short({rows} * {cols} // 32 * 16, ({rows}, {cols}), torch.int64, below={cols})\ny = table.gather(1, x)",
}
UNARY = ("x.exp()", "x * 2", "x.abs()", "x.neg()", "x.sigmoid()")


def random_program(seed):
    rnd = random.Random(seed)
    name = list(WORK)[seed % len(WORK)] if seed < 2 * len(WORK) else rnd.choice(list(WORK))
    n, rows, cols = rnd.choice((48, 1000, 4096, 30000, 70001)), rnd.choice((9, 40, 130)), rnd.choice((7, 33, 50, 64))
    pitch, deep = cols + rnd.choice((3, 10, 13)), rnd.choice((3, 5))
    # a multiple of 16 elements: then the memory ends where the elements do, whatever their type
    few = lambda all_: max(16, rnd.randrange(all_ // 4, all_ * 7 // 8) // 16 * 16)
    types = ("torch.float32", "torch.float64", "torch.float16", "torch.bfloat16")
    ftype = rnd.choice(types)
    fields = {"n": n, "rows": rows, "cols": cols, "pitch": pitch, "deep": deep, "count": rnd.choice((300, 2000)), "few": few(n), "few2": few(rows * pitch),
              "few3": few(deep * rows * pitch), "offset": rnd.choice((0, 0, 4, 7)), "ftype": ftype, "other": rnd.choice([t for t in types if t != ftype]),
              "itype": rnd.choice(("torch.int64", "torch.int32")), "dim": rnd.choice((0, 1)), "unary": rnd.choice(UNARY), "seed": seed}
    return "%s-%d" % (name, seed), PROGRAM.format(seed=seed, ftype=fields["ftype"], itype=fields["itype"], other=fields["other"], work=WORK[name].format(**fields))


def numbers(text):
    return [int(word) for word in re.findall(r"\d+", text or "")]


def merged(shape, stride):
    """Dimensions as an iterator sees them: without those of size 1, and those that lie behind each other as one; in no order."""
    pairs = sorted(((s, t) for s, t in zip(shape, stride) if s != 1), key=lambda p: p[1])
    out = []
    for size, step in pairs:
        if out and out[-1][0] * out[-1][1] == step:
            out[-1] = (out[-1][0] * size, out[-1][1])
        else:
            out.append((size, step))
    return sorted(out)


def wrong_view(view, element, truth):
    """What the sizes, strides and the position say that is not so; None if nothing."""
    sizes, strides, at = numbers(view.get("sizes")), numbers(view.get("strides")), numbers(view.get("position"))
    unit = element["bytes"] if element else truth["bytes"]
    if truth.get("view"):
        known = []
        for scale in (1, truth["bytes"]):       # where the type is not known, strides are bytes
            steps = [s * scale for s in truth["stride"]]
            known += [merged(truth["shape"], steps), sorted(zip(truth["shape"], steps))]        # another operand may keep them apart
        if sorted(zip(sizes, strides)) not in known:
            return "sizes %s, strides %s of a tensor %s" % (view.get("sizes"), view.get("strides"), truth)
    if at and element:
        reached = sum(p * s for p, s in zip(at, strides))
        if reached not in (element["index"], element["index"] * unit):
            return "position %s is element %d, not %d" % (view.get("position"), reached, element["index"])
    if view.get("room") not in (None, truth["room"], truth["room"] * truth["bytes"]):
        return "room for %s, not %d" % (view["room"], truth["room"])
    return None


def judge(verdict, truth):
    """"right", "unsaid" or what is wrong."""
    fault = verdict.get("fault") or {}
    element, view = fault.get("element"), fault.get("view")
    if truth is None:
        return "WRONG: the program failed before its kernel"
    if verdict.get("cause") != "illegal-access-out-of-bounds":
        return "unsaid: cause %s" % verdict.get("cause")
    if element:
        if element["of"] != truth["room"] * truth["bytes"] // element["bytes"]:
            return "WRONG: %s of %s, truth %s" % (element["index"], element["of"], truth)
        if element["index"] < element["of"]:
            return "WRONG: element %s is inside (%s)" % (element["index"], element["of"])
    bad = wrong_view(view, element, truth) if view else None
    if bad:
        return "WRONG: " + bad
    if not element and not view:
        return "unsaid: " + (verdict.get("why") or ["nothing"])[0]
    if truth.get("view") and not view:
        return "unsaid: element %s of %s, but no sizes" % (element["index"], element["of"])
    said = "element %s of %s" % (element["index"], element["of"]) if element else "no element"
    return "right: %s%s" % (said, ", sizes %s, strides %s, position %s" % (view.get("sizes"), view.get("strides"), view.get("position")) if view else "")


def run(args, name, path):
    out = os.path.join(args.artifacts, name)
    command = [os.path.join(args.build, "cuwhy"), "run", "--guard", "--out", out, "--force", args.python, path]
    began = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "WRONG: still running after %d s" % LIMIT
    truth = next((json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("TRUTH ")), None)
    with open(os.path.join(out, "stderr"), "w", encoding="utf-8") as f:
        f.write(done.stderr)
    try:
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as f:
            verdict = json.load(f)
    except OSError:
        return "WRONG: no verdict, status %d" % done.returncode
    kernel = re.sub(r"^(void )?(at::native::)?(\(anonymous namespace\)::)?", "", (verdict.get("kernel") or {}).get("name") or "-")
    return "%s   [%s, %s, %.1f s]" % (judge(verdict, truth), re.split(r"[<(]", kernel)[0], verdict.get("certainty"), time.time() - began)


def main():
    args = planted.arguments(__doc__, "cuwhy-index-")
    return planted.try_all(args, planted.programs(args, random_program), run, "unsaid") if args else 0


if __name__ == "__main__":
    sys.exit(main())
