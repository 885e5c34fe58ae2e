# SPDX-License-Identifier: Apache-2.0
"""Python that the fixes of kb/causes advise: it compiles, and runs with PyTorch on the simulated GPU where PyTorch is installed."""
import json
import os
import subprocess
import sys
import tempfile

import advised

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cuwhy", "torch")


def torch_folder():
    """What PYTHONPATH needs for `import torch`; "" if it needs nothing, None if there is no PyTorch."""
    kept = "%d.%d" % sys.version_info[:2]
    folders = [os.path.join(CACHE, name) for name in sorted(os.listdir(CACHE)) if name.endswith("-" + kept)] if os.path.isdir(CACHE) else []
    for folder in [os.environ.get("PYTHONPATH", "")] + folders:
        done = subprocess.run([sys.executable, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"],
                              env={**os.environ, "PYTHONPATH": folder})
        if done.returncode == 0:
            return folder
    return None


def run_all(cuwhy, folder, codes):
    """{code: why it fails, or ""}"""
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.path.join(scratch, "codes.json"), "w", encoding="utf-8") as f:
            json.dump(codes, f)
        done = subprocess.run([cuwhy, "run", "--gpu", "sim:rtx3060", "--", sys.executable, os.path.join(HERE, "run_snippets.py"), "codes.json"],
                              cwd=scratch, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True, timeout=300)
        try:
            with open(os.path.join(scratch, "results.json"), encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            return {"all": (done.stderr or done.stdout)[-500:]}


def check(claim, cuwhy, codes, asked):
    claim("%d pieces of Python compile" % (len(codes) + len(asked)),
          ["it does not compile: " + code for code in codes + asked if not advised.python_of(code)])
    folder = torch_folder()
    if folder is None:
        print("ok # SKIP Python is not run: PyTorch is not installed")
        return
    results = run_all(cuwhy, folder, codes + asked)
    skipped = sorted(code for code, why in results.items() if why.startswith("skip"))
    claim("%d pieces of Python run with PyTorch on a simulated GPU; %d need packages that are not here" %
          (len(results) - len(skipped), len(skipped)),
          ["%s\n        %s" % (code, why) for code, why in results.items() if why and not why.startswith("skip")])
