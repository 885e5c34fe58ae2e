#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does cuwhy know whether a CUDA failure ended the program, or whether the program ended for a reason of its own?

    tests/e2e/endings.py [--build build] [--programs 60] [--seed 1] [-j 2] [--python PYTHON] [--artifacts DIR] [name…]

Runs random programs on the simulated GPU. In each, one call of CUDA fails in one of several ways; what the program does about it, and what ends it, is drawn, too,
so the truth is known: "ended" (the failure, or what was raised for it, ended the program), "survived" (it ended for another reason) or "child" (a child process died of it, and
its parent expected that). What is said must agree: for "ended" the cause is that failure; for "survived" it is none, and the failure a note. Where nothing that can be seen
from outside tells the two apart, a cause that is `likely` and says how the program ended is "unsure". Anything else is wrong, above all what is certain. A name is
part of a program's name: its action, its failure, its end.
"""
import functools
import json
import os
import random
import subprocess
import sys
import textwrap
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
import planted  # noqa: E402

LIMIT = 200     # seconds for one program
HERE = os.path.dirname(os.path.abspath(__file__))

HEAD = """
import atexit, concurrent.futures, contextlib, ctypes, functools, gc, logging, multiprocessing, os, subprocess, sys, threading, traceback, unittest
import cudrv
{more}

class StepFailed(Exception):
    pass

def start():
    global nop, trap
    cudrv.init()
    nop, trap = cudrv.kernel("nop"), cudrv.kernel("trap")
    {begin}

def work(times={times}):
    for _ in range(times):
        at = cudrv.alloc(1 << 16)
        cudrv.launch(nop, (1,), (1,))
        cudrv.free(at)
        {use}
    cudrv.synchronize()

def status():
    out = ctypes.c_uint64()
    return {status}

def step():
    {step}

def forward():
    {fill}
    return step()

"""
FAILURES = {
    "oom": ("cudrv.alloc(1 << 40)", "cudrv.cuda.cuMemAlloc_v2(ctypes.byref(out), ctypes.c_size_t(1 << 40))"),
    "grid": ("cudrv.launch(nop, (1, 70000), (1,))", "cudrv.cuda.cuLaunchKernel(nop, 1, 70000, 1, 1, 1, 1, 0, None, None, None)"),
    "block": ("cudrv.launch(nop, (1,), (4096,))", "cudrv.cuda.cuLaunchKernel(nop, 1, 1, 1, 4096, 1, 1, 0, None, None, None)"),
    "fault": ("cudrv.launch(trap, (1,), (1,)); cudrv.synchronize()",
              "cudrv.cuda.cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, None, None, None) or cudrv.cuda.cuCtxSynchronize()"),
}
# With PyTorch: what it raises itself, beside calls of the driver by other code.
TORCH = {
    "oom": ("torch.empty(1 << 40, device='cuda')", FAILURES["oom"][1]),
    "grow": ("torch.cat([torch.empty(1 << 33, dtype=torch.uint8, device='cuda') for _ in range(8)])", FAILURES["grid"][1]),
    "backward": ("torch.utils.checkpoint.checkpoint(lambda x: x.expand(1 << 35).contiguous() if torch.is_grad_enabled() else x * 2, "
                 "torch.ones(1, device='cuda', requires_grad=True), use_reentrant=True).sum().backward()", FAILURES["block"][1]),
    "ordinal": ("torch.ones(1, device='cuda:7')", FAILURES["block"][1]),
}
STICKY = ("fault",)

# Reasons of the program's own; as statements of a function.
OWN = {
    "value": "raise ValueError('expected 3 columns, got 4')",
    "exit": "sys.exit(3)",
    "assert": "assert len(sys.argv) > 5, 'no input'",
    "interrupt": "raise KeyboardInterrupt",
    "main": "try:\n    raise ValueError('expected 3 columns, got 4')\nexcept Exception:\n    traceback.print_exc()\n    sys.exit(1)",
    "quit": "sys.stdout.flush()\nos._exit(4)",
    "thread": "thread = threading.Thread(target=sys.exit)\nthread.start()\nthread.join()\nsys.exit('no result')",
}

# The failure ended the program.
ENDED = {
    "uncaught": "start()\n{before}\nforward()",
    "chained": "start()\ntry:\n    forward()\nexcept Exception as e:\n    raise StepFailed('step 7') from e",
    "context": "start()\ntry:\n    forward()\nexcept Exception:\n    raise StepFailed('step 7')",
    "from-none": "start()\ntry:\n    forward()\nexcept Exception:\n    raise StepFailed('step 7') from None",
    "main-print": "def main():\n    start()\n    {before}\n    forward()\ntry:\n    main()\nexcept Exception:\n    traceback.print_exc()\n    sys.exit(1)",
    "main-log": "def main():\n    start()\n    {before}\n    forward()\ndef run():\n    try:\n        main()\n    except Exception as e:\n"
                "        logging.exception('failed: %s', e)\n        sys.exit(1)\nrun()",
    "main-return": "def main():\n    start()\n    {before}\n    try:\n        forward()\n    except Exception as e:\n        print('error:', e, file=sys.stderr)\n        return 1\n"
                   "    return 0\nsys.exit(main())",
    "main-quit": "try:\n    start()\n    forward()\nexcept BaseException:\n    traceback.print_exc()\n    os._exit(1)",
    "main-saves": "start()\ntry:\n    forward()\nexcept Exception:\n    traceback.print_exc()\n    work(2)\n    sys.exit(1)",
    "context-exits": "class Guard:\n    def __enter__(self):\n        return self\n    def __exit__(self, kind, e, where):\n        work()\n        if kind:\n            print('fatal:', e)\n"
                     "            sys.exit(1)\nstart()\nwith Guard():\n    forward()",
    "gave-up": "def find(train):\n    size = 8\n    while True:\n        if size == 0:\n            raise RuntimeError('no batch size fits')\n        try:\n            return train(size)\n        except Exception:\n"
               "            gc.collect()\n            size //= 2\ndef train(size):\n    {before}\n    forward()\nstart()\nfind(train)",
    "after-others": "start()\ntry:\n    {step}\nexcept {error}:\n    work()\nforward()",
    "finally": "start()\ntry:\n    forward()\nfinally:\n    print('clean')",
    "with": "@contextlib.contextmanager\ndef scope():\n    try:\n        yield\n    finally:\n        cudrv.free(0)\nstart()\nwith scope():\n    forward()",
    "other-clause": "start()\ntry:\n    forward()\nexcept (ValueError, KeyError):\n    print('skipped')",
    "future": "start()\ncontext = ctypes.c_void_p()\ncudrv.call('cuCtxGetCurrent', ctypes.byref(context))\ndef task():\n    cudrv.call('cuCtxSetCurrent', context)\n    return forward()\n"
              "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n    done = pool.submit(task)\n    {before}\n    done.result()",
    "stored": "start()\nkept = []\ntry:\n    forward()\nexcept Exception as e:\n    kept.append(e)\n{clean}\nraise kept[0]",
    "spawned": "def child():\n    start()\n    forward()\nif __name__ == '__main__':\n    process = multiprocessing.get_context('spawn').Process(target=child)\n    process.start()\n"
               "    process.join()\n    sys.exit(process.exitcode)",
    "command": "if len(sys.argv) > 1:\n    start()\n    forward()\nelse:\n    subprocess.run([sys.executable, __file__, 'child'], check=True)",
    "pool": "def task():\n    start()\n    return forward()\nif __name__ == '__main__':\n"
            "    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:\n        pool.submit(task).result()",
    "unittest": "class Test(unittest.TestCase):\n    def test_a(self):\n        work()\n    def test_b(self):\n        forward()\nstart()\nunittest.main()",
    "unittest-more": "class Test(unittest.TestCase):\n    def test_a(self):\n        forward()\n    def test_b(self):\n        work()\nstart()\nunittest.main()",
    "pytest": "import pytest\ndef test_a():\n    start()\n    forward()\ndef test_b():\n    start()\n    work()\nif __name__ == '__main__':\n"
              "    sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', __file__]))",
}
# The program's own code saw the status, and raised for it.
ENDED_STATUS = {
    "raises": "def run():\n    start()\n    {before}\n    r = status()\n    if r:\n        raise RuntimeError(f'launch failed {{r}}')\nrun()",
    "raises-words": "def run():\n    start()\n    {before}\n    r = status()\n    {fill}\n    if r != 0:\n        raise RuntimeError('the step did not work')\nrun()",
    "raises-there": "def run():\n    out = ctypes.c_uint64()\n    r = {status}\n    if r:\n        {clean}\n        raise StepFailed('no')\n    return out.value\nstart()\nrun()",
    "helper": "def check(r):\n    if r:\n        raise RuntimeError('no')\nstart()\nr = status()\ncheck(r)",
    "helper-line": "def check(r):\n    if r:\n        raise RuntimeError('no')\nstart()\ncheck(status())",
    "decorator": "def checked(f):\n    @functools.wraps(f)\n    def call(*args):\n        r = f(*args)\n        if r:\n            raise RuntimeError(f.__name__ + ' failed')\n    return call\n"
                 "@checked\ndef go():\n    return status()\nstart()\ngo()",
    "status-exit": "start()\nr = status()\nif r:\n    print('failed', r)\n    sys.exit(1)",
}
# The program caught it; {own} ends it. {after}: more work on the GPU, or nothing.
SURVIVED = {
    "retried": "start()\ntry:\n    forward()\nexcept {error}:\n    cudrv.alloc(1 << 10)\n{after}\nown()",
    "logged": "def attempt():\n    try:\n        forward()\n    except Exception as e:\n        logging.warning('skipped: %s', e)\nstart()\nattempt()\n{after}\nown()",
    "false": "def attempt():\n    try:\n        forward()\n        return True\n    except {error}:\n        return False\nstart()\nprint(attempt())\n{after}\nown()",
    "other-words": "start()\ntry:\n    forward()\nexcept {error}:\n    print('skipped')\nwork()\nraise RuntimeError('CUDA error: out of memory, invalid argument is what you would get; set --cpu')",
    "exit-caught": "def attempt():\n    try:\n        forward()\n    except Exception:\n        sys.exit(1)\nstart()\ntry:\n    attempt()\nexcept SystemExit:\n    print('next')\nwork()\nsys.exit(3)",
    "thread-exits": "start()\ncontext = ctypes.c_void_p()\ncudrv.call('cuCtxGetCurrent', ctypes.byref(context))\ndef task():\n    cudrv.call('cuCtxSetCurrent', context)\n    try:\n        forward()\n"
                    "    except Exception:\n        sys.exit(1)\nthread = threading.Thread(target=task)\nthread.start()\nthread.join()\nsys.exit(3)",
    "loop": "start()\nfor turn in range(6):\n    try:\n        work(1)\n        if turn == 3:\n            forward()\n    except RuntimeError:\n        continue\n{after}\nown()",
    "suppressed": "start()\nwith contextlib.suppress(RuntimeError):\n    forward()\n{after}\nown()",
    "ignored": "start()\nstatus()\n{after}\nown()",
    "ignored-here": "def run():\n    start()\n    out = ctypes.c_uint64()\n    r = {status}\n    {after}\n    own()\nrun()",
    "same-function": "def run():\n    start()\n    try:\n        forward()\n    except Exception:\n        print('skipped')\n    {after}\n    own()\nrun()",
    "future-seen": "start()\ncontext = ctypes.c_void_p()\ncudrv.call('cuCtxGetCurrent', ctypes.byref(context))\ndef task():\n    cudrv.call('cuCtxSetCurrent', context)\n    return forward()\n"
                   "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n    print(pool.submit(task).exception())\n{after}\nown()",
    "exit-guarded": "def attempt(last):\n    try:\n        forward()\n    except {error}:\n        if last:\n            sys.exit(1)\nstart()\nattempt(False)\n{after}\nown()",
    "generator": "def batches():\n    try:\n        yield 1\n    finally:\n        forward()\nstart()\nit = batches()\nnext(it)\ndel it\n{after}\nown()",
    "atexit": "start()\natexit.register(forward)\n{after}\nown()",
    "pool-seen": "def task():\n    start()\n    return forward()\nif __name__ == '__main__':\n    start()\n"
                 "    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:\n        print(pool.submit(task).exception())\n    {after}\n    own()",
    "piped": "def task(end):\n    start()\n    try:\n        end.send(forward())\n    except Exception as e:\n        end.send(repr(e))\nif __name__ == '__main__':\n    start()\n"
             "    context = multiprocessing.get_context('spawn')\n    here, there = context.Pipe()\n    process = context.Process(target=task, args=(there,))\n    process.start()\n"
             "    print(here.recv())\n    process.join()\n    {after}\n    own()",
    "unittest-raises": "class Test(unittest.TestCase):\n    def test_a(self):\n        with self.assertRaises(RuntimeError):\n            forward()\n    def test_b(self):\n        work()\n"
                       "        self.assertEqual(1, 2)\nstart()\nunittest.main()",
    "unittest-expected": "class Test(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_a(self):\n        forward()\n    def test_b(self):\n        work()\n"
                         "        self.assertEqual(1, 2)\nstart()\nunittest.main()",
    "pytest-raises": "import pytest\ndef test_a():\n    start()\n    with pytest.raises(RuntimeError):\n        forward()\ndef test_b():\n    {after}\n    assert 1 == 2\n"
                     "if __name__ == '__main__':\n    sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', __file__]))",
    "pytest-xfail": "import pytest\n@pytest.mark.xfail\ndef test_a():\n    start()\n    forward()\ndef test_b():\n    start()\n    {after}\n    assert 1 == 2\n"
                    "if __name__ == '__main__':\n    sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', __file__]))",
}
# A child process died of it, as its parent expected; the parent ends well, or for a reason of its own.
CHILD = {
    "child-tried": "if len(sys.argv) > 1:\n    start()\n    forward()\nelse:\n    print(subprocess.run([sys.executable, __file__, 'child'], stderr=subprocess.DEVNULL).returncode)\n    start()\n"
                   "    {after}\n    {own_or_well}",
    "child-of-none": "if len(sys.argv) > 1:\n    start()\n    forward()\nelse:\n    print(subprocess.run([sys.executable, __file__, 'child'], stderr=subprocess.DEVNULL).returncode)",
    "child-again": "if len(sys.argv) > 1:\n    start()\n    if sys.argv[1] == 'large':\n        forward()\n    work()\n    own()\nelse:\n"
                   "    for size in ('large', 'small'):\n        print(subprocess.run([sys.executable, __file__, size], stderr=subprocess.DEVNULL).returncode)\n    sys.exit(2)",
    "child-joined": "def child():\n    start()\n    forward()\nif __name__ == '__main__':\n    process = multiprocessing.get_context('spawn').Process(target=child)\n    process.start()\n"
                    "    process.join()\n    start()\n    {after}\n    {own_or_well}",
}

def actions():
    groups = [("ended", ENDED), ("ended", ENDED_STATUS), ("survived", SURVIVED), ("child", CHILD)]
    return [(truth, name, text) for truth, group in groups for name, text in group.items()]


def random_program(torch, seed):
    """Its name and its text. The first seeds go through all actions."""
    rnd, failures, known = random.Random(seed), TORCH if torch else FAILURES, actions()
    truth, action, text = known[seed % len(known)] if seed < 3 * len(known) else rnd.choice(known)
    failure, own = rnd.choice(list(failures)), rnd.choice(list(OWN))
    step, status = failures[failure]
    if failure in STICKY and truth != "ended":
        if rnd.random() < 0.8:
            failure = rnd.choice([f for f in failures if f not in STICKY])
            step, status = failures[failure]
        else:
            truth = "ended"     # a context that is lost is survived by nothing, nor expected
    if failure in STICKY and ("work" in text or "pool-seen" in action or action in ("piped", "main-saves", "after-others")):
        failure = "oom"
        step, status = failures[failure]
        truth = next(t for t, n, _ in known if n == action)
    fill = rnd.choice(("pass", "print('step')", "sys.stdout.flush()"))
    fields = {"times": rnd.choice((1, 3, 40)), "step": step, "status": status, "fill": fill, "before": rnd.choice(("pass", "work()")),
              "after": "pass" if failure in STICKY else rnd.choice(("pass", "work()", "work()")), "clean": rnd.choice(("pass", "gc.collect()")),
              "error": "RuntimeError" if torch else "cudrv.CudaError", "more": "import torch, torch.utils.checkpoint" if torch else "",
              "begin": "torch.ones(1, device='cuda')" if torch else "pass", "use": "torch.ones(8, device='cuda') + 1" if torch else "pass",
              "own_or_well": rnd.choice(("own()", "pass"))}
    own_text = "def own():\n%s\n" % textwrap.indent(OWN[own], "    ")
    name = "%s-%s-%s-%s-%d" % (action, failure, own, "work" if fields["after"] != "pass" else "idle", seed)
    body = "\n".join(line.format(**fields) for line in text.split("\n"))
    return name, HEAD.format(**fields) + own_text + body + "\n# truth: %s\n" % truth


def is_there(python, module):
    """Not imported: a PyTorch without a GPU's libraries can be only under cuwhy."""
    find = "import importlib.util; raise SystemExit(importlib.util.find_spec(%r) is None)" % module
    return subprocess.run([python, "-c", find], capture_output=True).returncode == 0


def judge(verdict, truth, status):
    cause, sure = verdict.get("cause"), verdict.get("certainty")
    said = "%s, %s, %d notes, status %d" % (cause, sure, len(verdict.get("notes") or []), status)
    if truth == "ended":
        return ("WRONG: handled, " if cause == "none" else "unsure: " if verdict.get("ending") == "unknown" else "right: ") + said
    if truth == "survived" and cause == "none":
        return "right: " + said
    if truth == "child" and cause == "none" and verdict.get("notes"):
        return "right: " + said
    if sure == "certain" or verdict.get("ending") != "unknown":
        return "WRONG: blamed, " + said
    return "unsure: " + said


def try_one(python, cuwhy, folder, text, gpu="sim:tiny"):
    """What is said about one program, compared with its truth. `folder`: for the program and its recording."""
    truth = text.rpartition("# truth: ")[2].strip()
    path, out = os.path.join(folder, "program.py"), os.path.join(folder, "recording")
    os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    if "import pytest" in text and not is_there(python, "pytest"):
        return "unsure: no pytest"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY") or k == "CUWHY_RULES_FIRED"}
    env.update(PYTHONPATH=os.path.join(HERE, "site-packages"), PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1",
               XDG_STATE_HOME=os.path.join(folder, "state"))
    began = time.time()
    try:
        done = subprocess.run([cuwhy, "run", "--gpu", gpu, "--out", out, "--force", python, path], capture_output=True, text=True, timeout=LIMIT, env=env)
    except subprocess.TimeoutExpired:
        return "WRONG: still running after %d s" % LIMIT
    try:
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as f:
            verdict = json.load(f)
    except OSError:
        return "WRONG: no verdict, status %d: %s" % (done.returncode, done.stderr)
    return "%s   [%s, %.1f s]" % (judge(verdict, truth, done.returncode), truth, time.time() - began)


def run(args, name, path):
    with open(path, encoding="utf-8") as f:
        return try_one(args.python, os.path.join(args.build, "cuwhy"), os.path.join(args.artifacts, name), f.read(), args.gpu)


def main():
    args = planted.arguments(__doc__, "cuwhy-endings-", gpu=False)
    torch = is_there(args.python, "torch")
    args.gpu = "sim:a100-40gb" if torch else "sim:tiny"
    return planted.try_all(args, planted.programs(args, functools.partial(random_program, torch)), run, "unsure")


if __name__ == "__main__":
    sys.exit(main())
