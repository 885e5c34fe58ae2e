# SPDX-License-Identifier: Apache-2.0
"""For the dry runs of `cuwhy fit`: ends a training when enough of its memory is known.

Python imports a module of this name at its start. This one comes first in PYTHONPATH, lets the one behind it run, and asks PyTorch
for a call after every optimizer step. The script is not changed. CUWHY_FIT_STEPS: how many steps, "auto": until the peak has
not moved for STILL steps. CUWHY_FIT_STOPPED: a file that is told after how many steps it ended.

Daemons that the script starts keep these variables. They are left alone once `cuwhy fit` is over and its file is gone; a file that somebody
else puts there is no such file.
"""
import importlib.machinery
import importlib.util
import os
import stat
import sys

STILL = 3
MOST = 50       # a program whose memory grows in every step is ended as well


def run_next():
    """The module of the same name that would have been imported without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec and spec.loader:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def answer_file(flags):
    """The file that `cuwhy fit` waits for, opened; None: it is over."""
    path = os.environ.get("CUWHY_FIT_STOPPED", "")
    try:
        folder = os.lstat(os.path.dirname(path))
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or folder.st_mode & 0o022:
            return None
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return fd
    os.close(fd)
    return None


def is_waited_for():
    fd = answer_file(os.O_RDONLY)
    if fd is not None:
        os.close(fd)
    return fd is not None


class Watch:
    """Counts the steps of each optimizer, and ends the process when it has seen enough."""

    def __init__(self, steps):
        self.steps = steps
        self.count, self.peak, self.moved = {}, 0, 0

    def step(self, optimizer, *_):
        import torch
        number = self.count[id(optimizer)] = self.count.get(id(optimizer), 0) + 1
        done = max(self.count.values())
        peak = sum(torch.cuda.max_memory_reserved(d) for d in range(torch.cuda.device_count())) if torch.cuda.is_initialized() else 0
        if peak > self.peak:
            self.peak, self.moved = peak, done
        if number == done and (done >= self.steps if self.steps else done - self.moved >= STILL or done >= MOST):
            self.stop(done)

    @staticmethod
    def stop(done):
        fd = answer_file(os.O_WRONLY)
        if fd is None:
            return
        os.write(fd, b"%d\n" % done)
        os.close(fd)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        os._exit(0)


class Finder:
    """Sees torch.optim.optimizer being imported."""

    def __init__(self, watch):
        self.watch = watch

    def find_spec(self, name, path=None, _target=None):
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            run, watch = spec.loader.exec_module, self.watch

            def exec_module(module):
                run(module)
                module.register_optimizer_step_post_hook(watch.step)

            spec.loader.exec_module = exec_module
        return spec


steps = os.environ.get("CUWHY_FIT_STEPS", "auto")
if steps != "all" and is_waited_for():
    sys.meta_path.insert(0, Finder(Watch(0 if steps == "auto" else int(steps))))
run_next()
