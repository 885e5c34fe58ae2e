#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the values that cuwhy prints for a failed device-side assert those that the program planted?

    tests/gpu/values.py [--default] [--build build] [--programs 30] [--seed 1] [--python PYTHON] [--artifacts DIR] [name…]

Runs random programs (a loss, embedding, index_select, gather, scatter, x[i], take, multinomial, binary_cross_entropy; sizes, types,
positions, several bad values), then those of tests/gpu/faults with an assertion, one after another under `cuwhy run
--dump-memory`. A program's own truth is every position that fails and its value. Each printed value must be one of them; "cannot be
followed" is told, a wrong value fails. Without a GPU everything is skipped, aloud. A name is part of a program's name.

With --default they are programs that have their bad indices, labels and probabilities from the host, in the ways that programs do: one copy, a loop that
copies batch after batch to the same memory, pinned memory, a cast, arithmetic, a view or a part of what was copied, one element written on the GPU. They run under
`cuwhy run` without options: the dump has no memory. Besides the value, the lines that copied and made the tensor must be those that are marked.
"""
import json
import math
import os
import random
import re
import subprocess
import sys
import time

import planted

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 300     # seconds for one program

PROGRAM = """
import json, torch
import torch.nn.functional as F
torch.manual_seed({seed})
{work}
torch.cuda.synchronize()
"""
# `bad`: position: value, in the order of memory; `give` puts them into a tensor and says so
GIVE = """
bad = {bad!r}
def give(x):
    flat = x.view(-1)
    for place, value in bad.items():
        flat[place] = float(value) if x.is_floating_point() else value
    shown = {{place: flat[place].double().item() if x.is_floating_point() else flat[place].item() for place in bad}}
    print("TRUTH " + json.dumps({{str(k): repr(v) for k, v in shown.items()}}), flush=True)
    return x
"""
WORK = {
    "loss": ("labels = give(torch.randint(0, {n}, ({count},), device='cuda'))\n"
             "F.cross_entropy(torch.randn({count}, {n}, device='cuda'), labels)", "int"),
    "loss2d": ("labels = give(torch.randint(0, {n}, (2, {count} // 2, 3), device='cuda'))\n"
               "F.cross_entropy(torch.randn(2, {n}, {count} // 2, 3, device='cuda'), labels)", "int"),
    "embedding": ("ids = give(torch.randint(0, {n}, ({count} // 4, 4), device='cuda'))\n"
                  "torch.nn.Embedding({n}, {width}).cuda()(ids)", "int"),
    "index_select": ("rows = give(torch.randint(0, {n}, ({count},), device='cuda', dtype={itype}))\n"
                     "torch.index_select(torch.randn({n}, {width}, device='cuda'), 0, rows)", "index"),
    "index": ("rows = give(torch.randint(0, {n}, ({count},), device='cuda'))\nx = torch.randn({n}, {width}, device='cuda')[rows]", "from_end"),
    "index_put": ("rows = give(torch.randint(0, {n}, ({count},), device='cuda'))\n"
                  "x = torch.zeros({n}, {width}, device='cuda'); x[rows] = 1.0", "from_end"),
    "gather": ("rows = give(torch.randint(0, {n}, ({count}, 2), device='cuda'))\n"
               "torch.gather(torch.randn({count}, {n}, device='cuda'), 1, rows)", "int"),
    "scatter": ("rows = give(torch.randint(0, {n}, ({count}, 1), device='cuda'))\n"
                "torch.zeros({count}, {n}, device='cuda').scatter_(1, rows, 1.0)", "int"),
    "take": ("rows = give(torch.randint(0, {n}, ({count},), device='cuda'))\ntorch.take(torch.randn({n}, device='cuda'), rows)", "from_end"),
    "multinomial": ("p = give(torch.rand(1, {count}, device='cuda', dtype={ftype}) + 0.1)\n"
                    "torch.multinomial(p, 2, replacement=True)", "probability"),
    "bce": ("x = give(torch.rand({count}, device='cuda', dtype={ftype}))\n"
            "F.binary_cross_entropy(x, torch.ones_like(x))", "range"),
}
LINES = ("lines right", "lines unsaid", "lines WRONG", "copy-unsure")
BAD = {
    "int": lambda r, n: r.choice((n, n + r.randrange(1, 1000), -1, -r.randrange(1, 90), 1 << 40)),
    "index": lambda r, n: n + r.randrange(100000),
    "from_end": lambda r, n: r.choice((n, n + r.randrange(1000), -n - 1, 1 << 35)),
    "probability": lambda r, n: r.choice(("-0.5", "-2.0", "inf", "nan")),
    "range": lambda r, n: r.choice(("1.5", "-0.25", "4.0", "nan")),
}


# --default: `data` is a CPU tensor with the bad values, `planted` says what they are; the result is `x`, on the GPU.
COME = """
import json, torch
import torch.nn.functional as F
torch.manual_seed({seed})
bad = {bad!r}
def planted(data, shift=0, from_=0):
    flat = data.view(-1)
    for place, value in bad.items():
        flat[place + from_] = float(value) if data.is_floating_point() else value - shift
    shown = {{p: flat[p + from_].double().item() if data.is_floating_point() else flat[p + from_].item() + shift for p in bad}}
    print("TRUTH " + json.dumps({{str(k): repr(v) for k, v in shown.items()}}), flush=True)
    return data
def fresh(count, dtype):
    return torch.rand(count, dtype=dtype) if dtype.is_floating_point else torch.randint(1, {n}, (count,), dtype=dtype)
dtype, count = {dtype}, {count}
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.{optimizer}(model.parameters())
def work():
    for _ in range({steps}):
        optimizer.zero_grad()
        (model(torch.randn(16, 32, device="cuda")) ** 2).mean().backward()
        optimizer.step()
work()
def use(x):
{use}
{come}
work()
torch.cuda.synchronize()
"""
COMES = {
    "cuda": "data = planted(fresh(count, dtype))\nx = data.cuda()  # <- copied\nwork()\nuse(x)",
    "tensor": "data = planted(fresh(count, dtype)).tolist()\nx = torch.tensor(data, device='cuda', dtype=dtype)  # <- copied\nuse(x)",
    "numpy": "data = planted(fresh(count, dtype)).numpy()\nx = torch.from_numpy(data).to('cuda')  # <- copied\nuse(x)",
    "pinned": "data = planted(fresh(count, dtype)).pin_memory()\nx = data.to('cuda', non_blocking=True)  # <- copied\nuse(x)",
    "buffer": "buffer = torch.empty(count, device='cuda', dtype=dtype)\nwork()\n"
              "for step in range(5):\n    data = fresh(count, dtype)\n    if step == 3:\n        planted(data)\n"
              "    buffer.copy_(data)  # <- copied\n    use(buffer)",
    "loader": "every = torch.cat([fresh(count, dtype), fresh(count, dtype), planted(fresh(count, dtype)), fresh(count, dtype)])\n"
              "loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(every), batch_size=count)\n"
              "for batch, in loader:\n    x = batch.to('cuda')  # <- copied\n    use(x)\n    work()",
    "prefetch": "batches = [fresh(count, dtype).pin_memory() for _ in range(8)]\nplanted(batches[5])\n"
                "for batch in batches:\n    x = batch.cuda(non_blocking=True)  # <- copied\n    use(x)",
    "cast": "data = planted(fresh(count, torch.int32))\nraw = data.cuda()  # <- copied\nwork()\nx = raw.long()  # <- made\nuse(x)",
    "shift": "data = planted(fresh(count, dtype), shift=-1)\nraw = data.cuda()  # <- copied\nx = raw - 1  # <- made\nuse(x)",
    "part": "data = planted(fresh(3 * count, dtype), from_=count)\nraw = data.cuda()  # <- copied\nx = raw[count:2 * count].clone()  # <- made\nuse(x)",
    "view": "data = planted(fresh(3 * count, dtype), from_=count)\nx = data.cuda()[count:2 * count]  # <- copied\nwork()\nuse(x)",
    "element": "x = fresh(count, dtype).cuda()\nplanted(fresh(count, dtype))\nfor place, value in bad.items():\n"
               "    x[place] = float(value) if dtype.is_floating_point else value  # <- copied\nuse(x)",
    "chosen": "data = planted(fresh(count, dtype))\nraw = data.cuda()  # <- copied\nx = raw[torch.arange(count, device='cuda')]  # <- made\nuse(x)",
}
USES = {
    "loss": ("F.cross_entropy(torch.randn({count}, {n}, device='cuda'), x)", "int"),
    "loss2d": ("F.cross_entropy(torch.randn(2, {n}, {count} // 2, device='cuda'), x.view(2, -1))", "int"),
    "embedding": ("torch.nn.Embedding({n}, {width}).cuda()(x.view(2, -1))", "int"),
    "index_select": ("torch.index_select(torch.randn({n}, {width}, device='cuda'), 0, x)", "index"),
    "index": ("torch.randn({n}, {width}, device='cuda')[x]", "from_end"),
    "index_put": ("y = torch.zeros({n}, {width}, device='cuda')\ny[x] = 1.0", "from_end"),
    "gather": ("torch.gather(torch.randn({count}, {n}, device='cuda'), 1, x.view(-1, 1))", "int"),
    "scatter": ("torch.zeros({count}, {n}, device='cuda').scatter_(1, x.view(-1, 1), 1.0)", "int"),
    "take": ("torch.take(torch.randn({n}, device='cuda'), x)", "from_end"),
    "bce": ("F.binary_cross_entropy(x, torch.ones_like(x))", "range"),
    "bernoulli": ("torch.bernoulli(x)", "range"),
}


def come_program(seed):
    rnd = random.Random(1000 + seed)
    use, come = list(USES)[seed % len(USES)], list(COMES)[seed % len(COMES)]
    text, kind = USES[use]
    n, count = rnd.choice((3, 10, 1000)), rnd.choice((16, 64, 100, 1000))
    real = kind == "range"
    if real and come in ("cast", "shift"):
        come = "loader"
    bad = {rnd.randrange(count): BAD[kind](rnd, n) for _ in range(rnd.choice((1, 1, 2)))}
    if come == "cast":
        bad = {place: value if abs(value) < 1 << 31 else n for place, value in bad.items()}
    fields = {"n": n, "count": count, "width": rnd.choice((1, 8, 64))}
    work = COME.format(seed=seed, bad=bad, dtype="torch.float32" if real else "torch.int64", optimizer=rnd.choice(("SGD", "AdamW")),
                       steps=rnd.choice((1, 3)), use="    " + text.format(**fields).replace("\n", "\n    "), come=COMES[come], **fields)
    return "%s-%s-%d" % (use, come, seed), work


def marked(path):
    """The lines that copy and make the tensor."""
    lines = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if "# <- " in line:
                lines[line.split("# <- ")[1].strip()] = number
    return lines.get("copied"), lines.get("made", lines.get("copied"))


def lines_said(verdict, path):
    """Are the lines right that are said to have copied and made it?"""
    said = ((verdict.get("fault") or {}).get("assert")) or {}
    found = [int(said[key].rsplit(":", 1)[1]) if said.get(key) else None for key in ("copied", "made")]
    want = marked(path)
    wrong = [w for w, f in zip(want, found) if f is not None and f != w]
    return "lines WRONG: %s, not %s" % (found, want) if wrong else "lines right" if found[1] == want[1] and (found[0] == want[0] or "-chosen-" in path) else "lines unsaid"


def fault_truths():
    """Programs of tests/gpu/faults: position: value; None: any value that is wrong will do."""
    return {
        "assert_label": {17: 10}, "assert_label_2d": {1191: 255}, "assert_embedding": {141: 1000}, "assert_bce_nan": {9: math.nan},
        "assert_index": {5 + i: 50 + i for i in range(5)}, "assert_index_put": {2: 256}, "assert_index_select": {2: 100},
        "assert_gather": {31: 6}, "assert_scatter": {9: 9, 19: 9}, "assert_take": {0: 64}, "assert_position": {128: 128, 129: 129},
        "assert_bce": None, "assert_multinomial": None, "assert_categorical": None, "assert_cupy": None, "assert_triton": None,
        "compile_index": {7: 64},
    }


def random_program(seed):
    rnd = random.Random(seed)
    name = list(WORK)[seed % len(WORK)] if seed < 2 * len(WORK) else rnd.choice(list(WORK))
    work, kind = WORK[name]
    n, count = rnd.choice((3, 10, 1000, 30522)), rnd.choice((16, 64, 100, 1000))
    if name in ("gather", "scatter"):
        n = min(n, 1000)
    total = {"loss2d": count // 2 * 6, "gather": 2 * count, "embedding": count // 4 * 4}.get(name, count)
    bad = {rnd.randrange(total): BAD[kind](rnd, n) for _ in range(rnd.choice((1, 1, 2, 5)))}
    fields = {"n": n, "count": count, "width": rnd.choice((1, 8, 64, 100)), "itype": rnd.choice(("torch.int64", "torch.int32")),
              "ftype": rnd.choice(("torch.float32", "torch.float64", "torch.float16", "torch.bfloat16") if name != "bce" else
                                  ("torch.float32", "torch.float64", "torch.float16", "torch.bfloat16"))}
    return "%s-%d" % (name, seed), PROGRAM.format(seed=seed, work=GIVE.format(bad=bad) + work.format(**fields))


def number(text):
    return float(text) if text in ("nan", "inf", "-inf") or "." in text or "e" in text else int(text)


def equal(a, b):
    a, b = float(a), float(b)
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-8 * max(abs(a), abs(b))


def judge(name, verdict, truth):
    """"right", "unread" or what is wrong."""
    said = ((verdict.get("fault") or {}).get("assert")) or {}
    if not said.get("values"):
        where = said.get("at")
        if where is not None and truth and int(where) not in truth:
            return "WRONG: position %s is not one of %s" % (where, sorted(truth)[:8])
        return "unread (%s)" % (said.get("places") or verdict.get("cause"))
    found = [(int(p or q), number(v)) for p, q, v in
             re.findall(r"(?:labels\[(\d+)\]|at position (\d+)) is (-?(?:nan|inf|[\d.e+-]+))", said["values"])]
    sums = [(int(p), number(v)) for p, v in re.findall(r"the sum up to position (\d+) is (-?(?:nan|inf|[\d.e+-]+))", said["values"])]
    for place, value in sums:
        wrong = [v for p, v in truth.items() if p <= place] if truth is not None else [value]
        if not wrong or (any(not math.isfinite(v) for v in wrong) and math.isfinite(value)):
            return "WRONG: %s; planted %s" % (said["values"], truth)
    if sums:
        return "right: " + said["values"]
    if not found:
        return "unread: no position in '%s'" % said["values"]
    for place, value in found:
        if truth is not None and (place not in truth or not equal(truth[place], value)):
            return "WRONG: %s; planted %s" % (said["values"], truth)
    return "right: " + said["values"]


def run(args, name, path, known, env):
    out = os.path.join(args.artifacts, name)
    command = [os.path.join(args.build, "cuwhy"), "run", "--out", out, "--force"] + ([] if args.default else ["--dump-memory"]) + [args.python, path]
    began = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, **env})
    except subprocess.TimeoutExpired:
        return "WRONG: still running after %d s" % LIMIT
    truth = known
    for line in done.stdout.splitlines():
        if line.startswith("TRUTH "):
            truth = {int(k): number(v) for k, v in json.loads(line[6:]).items()}
    with open(os.path.join(out, "stderr"), "w") as f:
        f.write(done.stderr)
    try:
        with open(os.path.join(out, "verdict.json")) as f:
            verdict = json.load(f)
    except OSError:
        return "WRONG: no verdict, status %d" % done.returncode
    for core in os.listdir(out):        # as large as the GPU's memory in use
        if core.endswith(".cudacore"):
            size = os.path.getsize(os.path.join(out, core))
            os.unlink(os.path.join(out, core))
            break
    else:
        size = 0
    said = judge(name, verdict, truth)
    if args.default:
        said += "; " + lines_said(verdict, path) + "; " + str(verdict["fault"]["assert"].get("source") if (verdict.get("fault") or {}).get("assert") else None)
    return "%s   [%s, %s; dump %d MB, %.1f s]" % (said, verdict.get("cause"), verdict.get("certainty"), size >> 20, time.time() - began)


def settings(path):
    """The variables that a program of tests/gpu/faults needs."""
    with open(path) as f:
        return dict(word.split("=", 1) for line in f if line.startswith("# env:") for word in line[6:].split())


def main():
    args = planted.arguments(__doc__, "cuwhy-values-", flags=[("--default", "the dumps have no memory; 40 programs are usual")])
    if not args:
        return 0
    if args.default:
        return planted.try_all(args, [(name, path, {}, {}) for name, path in planted.programs(args, come_program)], run, "unread", LINES)
    work = [(name, path, {}, {}) for name, path in planted.programs(args, random_program)]
    for name, truth in fault_truths().items():
        path = os.path.join(HERE, "faults", name + ".py")
        work.append((name, path, truth, settings(path)))
    return planted.try_all(args, work, run, "unread")


if __name__ == "__main__":
    sys.exit(main())
