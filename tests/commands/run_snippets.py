# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of Python, each with variables of the kind that its names suggest: run_snippets.py CODES.json writes results.json."""
import contextlib
import io
import json
import os
import socket
import sys
import types

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import advised  # noqa: E402

# other packages, with what of them is advised: run only where they are installed
OTHERS = {"jax": "jax", "cupy": "cupy", "ray": "ray", "tensorrt": "tensorrt", "torchvision": "torchvision", "np": "numpy", "transformers": "transformers"}


def free_port():
    """Another run of these tests may be in progress."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


ONE_RANK = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}


def names(device):
    """What a snippet may speak of."""
    linear = torch.nn.Linear(4, 4).to(device)
    ids = torch.tensor([[0, 1], [2, 3]])
    model = types.SimpleNamespace(config=types.SimpleNamespace(max_position_embeddings=8), resize_token_embeddings=lambda n: n,
                                  parameters=torch.nn.Linear(1, 1).parameters, named_parameters=torch.nn.Linear(1, 1).named_parameters,
                                  enable_input_require_grads=lambda: None)
    tokenizer = type("Tokenizer", (), {"__len__": lambda self: 4, "__call__": lambda self, text, truncation, max_length: [0]})()
    x = torch.rand(4, 4, device=device)
    shared, other = linear(x), torch.nn.Linear(4, 4).to(device)
    return {
        "loss_a": shared.exp().sum(), "loss_b": shared.pow(2).sum(), "loss_g": linear(x).sum(), "loss_d": other(x).sum(),
        "opt_g": torch.optim.SGD(linear.parameters()), "opt_d": torch.optim.SGD(other.parameters()), "w": torch.nn.Parameter(x.clone()),
        "output": x, "part": x, "mask": x > 0, "y": x,
        "torch": torch, "os": os, "collections": __import__("collections"), "multiprocessing": __import__("multiprocessing"),
        "dist": torch.distributed, "timedelta": __import__("datetime").timedelta, "DataLoader": torch.utils.data.DataLoader,
        "dataset": list(range(8)), "x": x, "a": x, "b": x, "n": 1000, "block": 256, "dim": 0, "n_classes": 4, "pad_id": 0, "step": lambda *words: None,
        "ids": ids, "idx": ids, "labels": ids[0], "positions": ids, "emb": torch.nn.Embedding(4, 4), "position_table": torch.nn.Embedding(4, 4),
        "scores": torch.rand(2, 4), "logits": torch.rand(2, 4), "probs": torch.rand(2, 4), "target": torch.rand(2, 4), "weight": x, "out": x,
        "batch": x, "loss": x.sum(), "loss_fn": lambda out: out.sum(), "total": 0.0, "outputs": [], "kept": [], "parts": [], "hidden": x, "text": "text",
        "g": torch.cuda.CUDAGraph(), "s": torch.cuda.Stream(), "stream": torch.cuda.Stream(), "model": model, "tokenizer": tokenizer,
        "linear": linear, "device": device, "model_or_other": x, "path": "checkpoint.pt", "op": lambda *words: words[0],
        "kernel": types.SimpleNamespace(max_dynamic_shared_size_bytes=0), "time": __import__("time"), "deadline": float("inf"),
        "lock": __import__("threading").Lock(), "q": types.SimpleNamespace(get=lambda timeout: 1), "sock": __import__("socket").socket(),
    }


def adapted(code):
    """`...` where a value must stand; the model that is run, not the tokenizer's."""
    code = code.replace("DataLoader(..., ", "DataLoader(dataset, ").replace("(part, ...)", "(part, part)")
    if "model(part)" in code or "(model)" in code or "model.to(" in code:
        code = code.replace("model(part)", "linear(part)").replace("(model)", "(linear)").replace("model.to(", "linear.to(")
    if "checkpoint(block" in code:
        code = code.replace("checkpoint(block", "checkpoint(linear")
    return code


def missing(code):
    for word, package in OTHERS.items():
        if word + "." in code or "import " + package in code or ", " + package in code:
            try:
                __import__(package)
            except ImportError:
                return package
    return None


def attempt(code, device):
    space = names(device)
    if "np." in code:
        import numpy
        space["np"] = numpy
        numpy.save("data.npy", numpy.zeros(4))
    torch.save({"x": torch.zeros(1)}, "checkpoint.pt")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(advised.python_of(adapted(code)), "advice", "exec"), space)
        if "advised" in space and callable(space["advised"]):
            space["advised"]()
    if torch.distributed.is_initialized() and "init_process_group" not in code:
        return


def result(code):
    package = missing(code)
    if package:
        return "skip: no %s" % package
    why = ""
    for device in ("cuda", "cpu"):      # pinning needs a tensor on the CPU, is_cuda one on the GPU
        try:
            if "set_start_method" in code:
                code = code.replace('"spawn")', '"spawn", force=True)')
            attempt(code, device)
            return ""
        except Exception as e:
            why = why or "%s: %s" % (type(e).__name__, str(e).splitlines()[0] if str(e) else "")
    return why


def main():
    os.environ.update(ONE_RANK)
    with open(sys.argv[1], encoding="utf-8") as f:
        codes = json.load(f)
    # what needs a process group comes after what makes one
    codes.sort(key=lambda code: ("fsdp" in code or "barrier" in code, code))
    results = {code: result(code) for code in codes}
    with open("results.json", "w", encoding="utf-8") as f:
        json.dump(results, f)


if __name__ == "__main__":
    main()
