# SPDX-License-Identifier: Apache-2.0
"""Random programs that know their own truth (values.py, index.py, tests/e2e/endings.py): the command line, the programs, the count of what was said about them."""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile


def arguments(text, prefix, gpu=True, flags=()):
    """None: a GPU is needed, there is none, and that was said. `flags`: names and help of more options."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="programs at a time")
    parser.add_argument("--artifacts", help="leave programs and recordings in this folder")
    for name, meaning in flags:
        parser.add_argument(name, action="store_true", help=meaning)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    here = "import torch; raise SystemExit(not torch.cuda.is_available())" if gpu else "pass"
    if subprocess.run([args.python, "-c", here], capture_output=True).returncode:
        print("SKIP: no PyTorch with a GPU")
        return None
    args.artifacts = args.artifacts or tempfile.mkdtemp(prefix=prefix)
    os.makedirs(args.artifacts, exist_ok=True)
    return args


def programs(args, make):
    """Names and paths; `make` turns a seed into a name and a text."""
    for seed in range(args.seed, args.seed + args.programs):
        name, text = make(seed)
        path = os.path.join(args.artifacts, name + ".py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        yield name, path


def try_all(args, work, run, nothing, words=()):
    """Runs what was asked for; the first word of each result is right, WRONG, or the word for nothing said. The exit status. `words` are counted, too."""
    work = [item for item in work if not args.names or any(name in item[0] for name in args.names)]
    counts = {"right": 0, nothing: 0, "WRONG": 0}
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    for (name, *_), result in zip(work, pool.map(lambda item: run(args, *item), work)):
        counts[re.match(r"\w+", result)[0]] += 1
        counts.update({word: counts.get(word, 0) + (word in result) for word in words})
        print("%-24s %s" % (name, result), flush=True)
    print("%d right, %d %s, %d wrong" % (counts["right"], counts[nothing], nothing, counts["WRONG"]))
    if words:
        print(", ".join("%d %s" % (counts[word], word) for word in words if word in counts))
    return 1 if counts["WRONG"] else 0
