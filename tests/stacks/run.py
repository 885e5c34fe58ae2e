#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people run on the simulated GPU: real packages, their own way to start, figures against arithmetic.

    tests/stacks/run.py [--build build] [--cache build/stacks] [--list] [name…]

Each row installs its packages into a folder of the cache, once, runs a program, and must end well. Of vLLM, the memory of the weights and
of the KV cache must be what the model's configuration says, within 1 %. A row takes minutes and gigabytes, so only `make check-stacks` runs it.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GIB = 1 << 30
LIMIT = 1500        # seconds for one program
NEAR = 0.01
QUIET = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_USE_FLASHINFER_SAMPLER": "0"}    # its sampler wants a compiler

QWEN = dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
            head_dim=128, intermediate_size=3072, vocab_size=151936, max_position_embeddings=40960, tie_word_embeddings=True, torch_dtype="bfloat16",
            hidden_act="silu", rms_norm_eps=1e-06, rope_theta=1000000, attention_bias=False)
LLAMA = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
             head_dim=128, intermediate_size=14336, vocab_size=128256, max_position_embeddings=131072, tie_word_embeddings=False, torch_dtype="bfloat16",
             hidden_act="silu", rms_norm_eps=1e-05, rope_theta=500000.0, attention_bias=False)


def parameters(c):
    attention = c["hidden_size"] * c["head_dim"] * 2 * (c["num_attention_heads"] + c["num_key_value_heads"])
    layer = attention + 3 * c["hidden_size"] * c["intermediate_size"] + 2 * c["hidden_size"]
    return c["num_hidden_layers"] * layer + c["vocab_size"] * c["hidden_size"] * (1 if c["tie_word_embeddings"] else 2)


class Engine:
    """Figures that vLLM prints, against the configuration. Numbers of 2 bytes."""

    def __init__(self, config, cards):
        self.config, self.cards = config, cards

    def figures(self, text):
        c = self.config
        token = 2 * c["num_hidden_layers"] * c["num_key_value_heads"] // self.cards * c["head_dim"] * 2
        number = lambda words: float(re.search(words + r"[^\d]*([\d.,]+)", text).group(1).replace(",", ""))
        yield "weights, GiB", number("Model loading took"), 2 * parameters(c) / self.cards / GIB
        yield "KV cache, GiB", number("GPU KV cache size:") * token / GIB, number("Available KV cache memory:")


def row(gpu, packages, program, *words, environment=None, engine=None):
    return {"gpu": gpu, "packages": packages, "program": program, "words": words, "environment": environment or {}, "engine": engine}


VLLM = ("vllm==0.32.0",)
ROWS = {
    "vllm-0.6b": row("sim:h200", VLLM, "vllm_generate.py", json.dumps(QWEN), "1", "eager", environment=QUIET, engine=Engine(QWEN, 1)),
    "vllm-8b": row("sim:h100-80gb", VLLM, "vllm_generate.py", json.dumps(LLAMA), "1", "eager", environment=QUIET, engine=Engine(LLAMA, 1)),
    "vllm-8b-tp2": row("sim:h100-80gb*2", VLLM, "vllm_generate.py", json.dumps(LLAMA), "2", "eager", environment=QUIET, engine=Engine(LLAMA, 2)),
    "tinygrad": row("sim:h200", ("tinygrad==0.14.0",), "tinygrad_sum.py", environment={"DEV": "CUDA", "CUDA": "1"}),
    "cuda-python": row("sim:h200", ("cuda-python==13.4.4",), "cuda_bindings.py"),
}


def install(packages, cache):
    """The Python of a virtual environment with these packages."""
    folder = os.path.join(os.path.abspath(cache), re.sub(r"\W+", "-", " ".join(packages)))
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        print("installing %s" % " ".join(packages), file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "install", "-q", *packages], check=True)
        open(os.path.join(folder, "complete"), "w", encoding="ascii").close()
    return python


def run(args, name):
    """What is wrong, in words; empty: nothing."""
    r = ROWS[name]
    python, began = install(r["packages"], args.cache), time.monotonic()
    command = [os.path.abspath(os.path.join(args.build, "cuwhy")), "run", "--gpu", r["gpu"], "--", python, os.path.join(HERE, "programs", r["program"]), *r["words"]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=dict(os.environ, **r["environment"]), check=False)
    except subprocess.TimeoutExpired:
        return "still running after %d s" % LIMIT
    text, wrong, figures = done.stdout + done.stderr, [], []
    if done.returncode or "generated" not in done.stdout:
        return "status %d: %s" % (done.returncode, text.strip()[-600:])
    for what, said, expected in r["engine"].figures(text) if r["engine"] else ():
        figures.append("%s %.2f (%.2f)" % (what, said, expected))
        if abs(said - expected) > NEAR * expected:
            wrong.append("%s: %.3f instead of %.3f" % (what, said, expected))
    print("%s - %-14s %4.0f s  %s" % ("not ok" if wrong else "ok", name, time.monotonic() - began, "; ".join(figures)), flush=True)
    return "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--cache", default="build/stacks", help="where packages are installed (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="only the names of the rows")
    parser.add_argument("names", nargs="*", help="rows; all when none is given")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in ROWS]
    if args.list or unknown:
        print("\n".join(ROWS))
        sys.exit("check-stacks: there is no row %s" % unknown[0] if unknown else 0)
    bad = 0
    for name in args.names or ROWS:
        wrong = run(args, name)
        if wrong:
            bad += 1
            print("not ok - %s: %s" % (name, wrong), flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
