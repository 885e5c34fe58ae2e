# SPDX-License-Identifier: Apache-2.0
"""For the dry runs of `cuwhy fit`: ends a training when enough of its memory is known.

Python imports a module of this name at its start. This one comes first in PYTHONPATH, lets the one behind it run, and asks PyTorch
for a call after every optimizer step. The script is not changed. CUWHY_FIT_STEPS: how many steps, "auto": until its memory has
settled, or is known to grow. CUWHY_FIT_STOPPED: a file that is told after how many steps it ended, and whether its memory had settled by then.
CUWHY_FIT_MOST: how many steps another run of the program has made. Then no clock decides: what is compared has made as many.
CUWHY_FIT_CHANGES: what to change in the program while it runs (_cuwhy_changes.py beside this file).

Daemons that the script starts keep these variables. They are left alone once `cuwhy fit` is over and its file is gone; a file that somebody
else puts there is no such file.
"""
import atexit
import importlib.machinery
import importlib.util
import os
import stat
import sys
import time
import types

LEAST = 12      # steps: what a training does in every tenth one, as logging, is seen
STILL = 3       # times the longest wait between two rises: what rises now and then would have risen again, three times
MOST = 50       # a program whose memory still rises is ended as well: after so many steps,
MOST_SECONDS = 10       # and so many seconds; quick programs do more steps, so that more histories are full by then
TOLD = 64       # steps of which it is told how much PyTorch had been asked for: a turn of a loop may have several
MOST_BYTES = 1 << 40    # or when no card has as much


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


def tell(what):
    """An object more in that file, on a line."""
    import json
    fd = answer_file(os.O_WRONLY | os.O_APPEND)
    if fd is not None:
        os.write(fd, json.dumps(what).encode("ascii") + b"\n")
        os.close(fd)
    return fd is not None


class Watch:
    """Counts the steps of each optimizer, and ends the process when it has seen enough."""

    def __init__(self, steps, before_end=lambda: None, most=0):
        self.steps, self.before_end = steps, before_end
        self.limit = most and max(most, MOST)   # steps, instead of seconds
        self.count, self.began = {}, time.monotonic()
        self.most = (0, 0, 0)   # in use after a step, in use at all, reserved
        self.asked = {}     # by step, when the first of several optimizers has taken it
        self.rose, self.longest = 0, 1      # the last step in which one of them did, steps between two

    def step(self, optimizer, *_):
        """Called in the program, which is not to fail because of it."""
        try:
            self.count_step(optimizer)
        except Exception:   # another PyTorch, or somebody's own: it runs to its end
            self.count_step = lambda _: None

    def count_step(self, optimizer):
        done = max(self.count.values(), default=0)
        # one that begins later goes on from there: it may replace another
        number = self.count[id(optimizer)] = self.count.get(id(optimizer), done) + 1
        done = max(done, number)
        if number < done:
            return      # of another optimizer, which is not as far
        self.look(done)
        settled = done >= LEAST and done - self.rose >= STILL * self.longest
        if done >= self.steps if self.steps else settled or self.grows(done):
            self.before_end()
            self.stop(done, settled, self.asked.values())

    def look(self, done):
        """Has any of its figures risen?"""
        import torch
        now = (0, 0, 0)
        if torch.cuda.is_initialized():
            of_all = [(torch.cuda.memory_allocated(d), torch.cuda.max_memory_allocated(d), torch.cuda.max_memory_reserved(d))
                      for d in range(torch.cuda.device_count())]
            now = tuple(sum(figures) for figures in zip(*of_all))
            if hasattr(torch.cuda, "memory_stats"):
                self.asked.setdefault(done, torch.cuda.memory_stats(0).get("allocation.all.allocated", 0))
                self.asked.pop(done - TOLD, None)
        if any(figure > most for figure, most in zip(now, self.most)):
            self.longest = max(self.longest, done - self.rose)
            self.rose = done
        self.most = tuple(map(max, now, self.most))

    def grows(self, done):
        enough = done > self.limit if self.limit else time.monotonic() - self.began >= MOST_SECONDS
        return done >= MOST and (enough or self.most[0] >= MOST_BYTES)

    def end(self):
        """The program ends by itself."""
        if self.count:
            tell({"took": max(self.count.values())})

    @staticmethod
    def stop(done, settled, asked):
        if not tell({"ended": done, "settled": settled, "asked": list(asked)}):
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        os._exit(0)


class Finder:
    """Sees modules being imported."""

    def __init__(self):
        self.waits = {}

    def when(self, name, done):
        """Calls `done` with the module, once it has been imported."""
        self.waits.setdefault(name, []).append(done)

    def find_spec(self, name, path=None, _target=None):
        waits = self.waits.pop(name, None)
        if not waits:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                for done in waits:
                    done(module)

            spec.loader.exec_module = exec_module
        return spec


def read_changes(names):
    """The module beside this one; by its path, since a program may have one of any name. Its frames are not to be taken for the program's."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_cuwhy_changes.py")
    module = sys.modules["_cuwhy_changes"] = types.ModuleType("_cuwhy_changes")
    module.__file__ = path
    with open(path, "rb") as source:
        exec(compile(source.read(), "<frozen _cuwhy_changes>", "exec"), vars(module))
    module.OURS.add(__file__)
    return module.Changes(names.split(","), os.environ.get("CUWHY_FIT_CALLS", "").split(","), tell)


def end_changes(changes, by_itself):
    """Whatever comes of it, a program that is to be ended is ended."""
    try:
        changes.end(by_itself)
    except Exception:
        pass


def watch_program():
    finder, changes = Finder(), None
    steps, names = os.environ.get("CUWHY_FIT_STEPS", "auto"), os.environ.get("CUWHY_FIT_CHANGES", "")
    if names:
        changes = read_changes(names)
        finder.when("torch.optim.optimizer", changes.of_optimizers)
        finder.when("torch.nn.modules.module", changes.of_modules)
        if "bf16" in changes.names:
            finder.when("torch.nn.functional", changes.of_functions)
        atexit.register(end_changes, changes, True)
    if steps != "all":
        watch = Watch(0 if steps == "auto" else int(steps), (lambda: end_changes(changes, False)) if changes else lambda: None,
                      int(os.environ.get("CUWHY_FIT_MOST", "0")))
        atexit.register(watch.end)
        finder.when("torch.optim.optimizer", lambda module: module.register_optimizer_step_post_hook(watch.step))
    sys.meta_path.insert(0, finder)


if is_waited_for():
    watch_program()
run_next()
