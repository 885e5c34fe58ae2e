# SPDX-License-Identifier: Apache-2.0
"""For the dry runs of `cuwhy fit`: changes that may make a program fit, made while it runs. The script is not edited.

CUWHY_FIT_CHANGES names them, separated by commas. What a change would apply to is reported in every such run (`able`), so that one run tells
which others are worth their time:

    foreach     optimizers update one parameter after the other
    checkpoint  repeated blocks compute their activations again in backward
    bf16        models and losses run under autocast
    no_grad     models whose outputs never reach backward run without a graph: those calls of CUWHY_FIT_CALLS

Which calls these are is only known at the end of a run. A call is known by the lines of the program that lead to it. What an optimizer has stepped
over twice since will not be passed to backward any more: its weights have been changed.

CUWHY_FIT_BATCHES: how much of the batch fits on cards, in millionths. Edits that make it as small are proposed.
"""
import functools
import importlib.util
import os
import sys
import sysconfig
import threading
import weakref
import zlib

CHANGES = ("foreach", "checkpoint", "bf16", "no_grad")
LATER = 2       # steps of an optimizer after a call: what has not been passed to backward by then will not be
FRAMES = 200
FEW_BLOCKS = 4  # stages of a network rather than its blocks, if there are blocks in them
DEEP = 5        # containers in a model's output
MANY = 1000     # things in it
OURS = {__file__}       # files of cuwhy


@functools.lru_cache(maxsize=None)
def is_of_program(filename):
    torch = sys.modules["torch"].__file__
    libraries = [os.path.join(folder, "") for folder in (sysconfig.get_paths()["stdlib"], os.path.dirname(torch))]
    return not (filename.startswith(("<", *libraries)) or "-packages/" in filename or filename in OURS)


def beside(name):
    """A module beside this one; by its path, since a program may have one of any name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of_program(frame):
    """(file, line) of the program's own frames, innermost first."""
    found = []
    while frame is not None and len(found) < FRAMES:
        if is_of_program(frame.f_code.co_filename):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def is_checkpointed(frame):
    """The program does so itself."""
    for _ in range(FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith("torch/utils/checkpoint.py"):
            return True
        frame = frame.f_back
    return False


def tensors_in(output):
    """The tensors of an output; None among them: it has something that was not looked into."""
    import torch
    left, seen = [(output, DEEP)], 0
    while left:
        value, deep = left.pop()
        seen += 1
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (torch.nn.Module, str, bytes, int, float, type, torch.dtype, torch.device)) or value is None:
            continue
        elif not deep or seen > MANY:
            yield None
        elif isinstance(value, (tuple, list, set)):
            left += [(one, deep - 1) for one in value]
        elif isinstance(value, dict):
            left += [(one, deep - 1) for one in value.values()]
        elif hasattr(value, "__dict__"):
            left += [(one, deep - 1) for one in vars(value).values()]
        else:
            yield None


def blocks_of(model):
    """Modules of one class that are called one after the other: layers of a transformer, blocks of a residual network."""
    import torch

    def repeated(module):
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
            return []
        children = [child for child in module.children() if next(child.children(), None) is not None]
        return [child for child in children if sum(type(other) is type(child) for other in children) > 1]

    def search(module):
        own = repeated(module)
        inner = [block for child in (own or module.children()) for block in search(child)]
        if own and (len(own) > FEW_BLOCKS or not inner):
            return own
        return inner

    return search(model)


def is_compiling():
    import torch
    return hasattr(torch, "compiler") and hasattr(torch.compiler, "is_compiling") and torch.compiler.is_compiling()


def has_floats(model):
    """Parameters on a GPU that autocast would round."""
    import torch
    return any(p.is_cuda and p.dtype == torch.float32 for p in model.parameters())


def line_of_program(frame):
    """The frame's line, if it is the program's own."""
    return (frame.f_code.co_filename, frame.f_lineno) if is_of_program(frame.f_code.co_filename) else None


class Call:
    """A line that calls a model with gradients switched on."""

    def __init__(self, lines, direct):
        self.lines, self.direct = lines, direct     # `direct`: the line itself does
        self.reached = False    # by backward
        self.step = None        # of the optimizer, when its output first had a graph
        self.times, self.trains = 0, False

    @property
    def id(self):
        return "%08x" % zlib.crc32(repr(self.lines).encode("utf-8", "surrogateescape"))

    def reach(self, _gradient):
        self.reached = True

    def watch(self, output):
        """Notices whether a gradient ever arrives."""
        for tensor in tensors_in(output):
            try:
                if tensor is None:
                    self.reached = True
                elif tensor.requires_grad:
                    tensor.register_hook(self.reach)
            except RuntimeError:
                self.reached = True     # not known


class Changes:
    """`names`: what is changed. `report`: takes what `cuwhy fit` is told."""

    def __init__(self, names, calls, report):
        self.names, self.without_grad, self.report = set(names), set(calls), report
        self.able = set()
        self.calls, self.steps = {}, 0
        self.batch = 0      # the largest that a model was trained with
        self.made, self.repeated = set(), set()     # lines that make optimizers, and that call blocks; None: not the program's
        self.here = threading.local()
        self.models, self.blocks = weakref.WeakSet(), weakref.WeakSet()
        self.floats = False     # a model has run under autocast

    def note(self, name, **detail):
        """It could be changed so; and is, if that was asked for."""
        if name not in self.able:
            self.able.add(name)
            self.report({"able": name, **detail})
        return name in self.names

    # -- optimizers --------------------------------------------------------------------------------------------

    def of_optimizers(self, module):
        """Called with torch.optim.optimizer."""
        init, changes = module.Optimizer.__init__, self

        @functools.wraps(init)
        def __init__(self, params, defaults):
            if "foreach" in defaults and defaults["foreach"] is not False and not defaults.get("fused"):
                changes.made.add(changes.line_that_makes(self, sys._getframe(1)))
                if changes.note("foreach"):
                    defaults = dict(defaults, foreach=False)
            init(self, params, defaults)

        module.Optimizer.__init__ = __init__
        if hasattr(module, "register_optimizer_step_post_hook"):
            module.register_optimizer_step_post_hook(self.step)

    @staticmethod
    def line_that_makes(optimizer, frame):
        """The line of the program that calls the optimizer's class; None: another library does."""
        while frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is optimizer and frame.f_back:
            frame = frame.f_back
        line = line_of_program(frame)
        return line and (*line, type(optimizer).__name__)

    def step(self, *_):
        if not self.steps:
            self.report({"trains": True})
        self.steps += 1

    # -- models ------------------------------------------------------------------------------------------------

    def of_modules(self, module):
        """Called with torch.nn.modules.module."""
        run, changes = module.Module.__call__, self

        def __call__(self, *args, **named):
            return changes.call(run, self, args, named)

        module.Module.__call__ = __call__

    def of_functions(self, module):
        """Called with torch.nn.functional: losses belong under autocast, too."""
        for name in dir(module):
            if name.endswith("_loss") or name in ("cross_entropy", "kl_div", "binary_cross_entropy_with_logits"):
                setattr(module, name, self.of_loss(getattr(module, name)))

    def of_loss(self, loss):
        import torch

        @functools.wraps(loss)
        def under_autocast(*args, **named):
            if is_compiling() or not self.floats or getattr(self.here, "call", None) or torch.is_autocast_enabled():
                return loss(*args, **named)
            with torch.autocast("cuda", torch.bfloat16):
                return loss(*args, **named)

        return under_autocast

    def look_at(self, model):
        """Once for each model."""
        self.models.add(model)
        self.blocks.update(blocks_of(model))

    def call(self, run, module, args, named):
        import torch
        here = self.here
        if torch._C._current_graph_task_id() != -1:     # in backward, which repeats what forward did
            return run(module, *args, **named)
        if getattr(here, "inside", False):
            output = self.call_block(run, module, args, named, sys._getframe(2))
            if here.call and not here.call.reached:
                here.call.watch(output)
            return output
        if module not in self.models:
            self.look_at(module)
        here.inside = True
        here.call = self.call_of(sys._getframe(2)) if torch.is_grad_enabled() else None
        try:
            return self.call_model(run, module, args, named)
        finally:
            here.inside, here.call = False, None

    def call_of(self, frame):
        """The one that these lines make."""
        lines = lines_of_program(frame)
        call = self.calls.get(lines)
        if call is None:
            call = self.calls[lines] = Call(lines, line_of_program(frame))
        return call

    def call_model(self, run, module, args, named):
        import torch
        call = self.here.call
        if call and module.training:
            first = next(tensors_in((*reversed(args), *named.values())), None)
            self.batch = max(self.batch, first.shape[0] if first is not None and first.dim() else 0)
        if call and call.id in self.without_grad and self.note("no_grad"):
            with torch.no_grad():
                return run(module, *args, **named)
        if has_floats(module) and not torch.is_autocast_enabled() and self.note("bf16"):
            self.floats = True
            with torch.autocast("cuda", torch.bfloat16):
                output = self.call_block(run, module, args, named, None)
        else:
            output = self.call_block(run, module, args, named, None)
        if call and not call.reached and any(t is None or t.requires_grad for t in tensors_in(output)):
            call.step = self.steps if call.step is None else call.step
            call.times, call.trains = call.times + 1, call.trains or module.training
            call.watch(output)
        return output

    def call_block(self, run, module, args, named, frame):
        import torch
        if not (module in self.blocks and module.training and torch.is_grad_enabled()) or getattr(self.here, "block", False) or \
                is_checkpointed(frame):
            return run(module, *args, **named)
        self.repeated.add(line_of_program(frame) if frame else None)
        if self.note("checkpoint", detail="%d %s" % (sum(block.training for block in self.blocks), type(module).__name__), batch_norm=self.has_batch_norm()):
            from torch.utils.checkpoint import checkpoint
            self.here.block = True
            try:
                return checkpoint(functools.partial(run, module, **named), *args, use_reentrant=False)
            finally:
                self.here.block = False
        return run(module, *args, **named)

    def has_batch_norm(self):
        """Its running averages would move in each of two forward passes."""
        import torch
        return any(isinstance(one, torch.nn.modules.batchnorm._BatchNorm) and one.track_running_stats for block in self.blocks for one in block.modules())

    # -- the end -----------------------------------------------------------------------------------------------

    def end(self, by_itself):
        """Which calls have never been part of a backward: of a program that was ended, those that optimizers have stepped over since."""
        calls = [call for call in self.calls.values() if call.step is not None and not call.reached and
                 (by_itself or call.step + LATER <= self.steps)]
        others = {line for call in self.calls.values() if call not in calls for line in call.lines}
        unreached = []
        for call in calls:
            file, line = next((line for line in call.lines if line not in others), (None, None))
            if file:    # with a line of its own
                self.report({"call": call.id, "times": call.times, "trains": call.trains, "file": file, "line": line})
                unreached.append((file, line))
        self.propose(unreached)

    def propose(self, unreached):
        """Edits of the program's file that do the same as the changes."""
        patches = beside("_cuwhy_patches")
        trained = [call for call in self.calls.values() if call.reached]
        found = {"no_grad": unreached, "foreach": self.made, "checkpoint": self.repeated, "bf16": {call.direct for call in trained}}
        for patch in patches.propose({change: sorted(set(places)) for change, places in found.items() if None not in places}):
            self.report(patch)
        millionths = [int(part) for part in os.environ.get("CUWHY_FIT_BATCHES", "").split(",") if part.isdigit()]
        files = {call.direct[0] for call in trained if call.direct} | {getattr(sys.modules.get("__main__"), "__file__", None)} - {None}
        self.report({"batch": self.batch})
        for patch in patches.smaller_batches(filter(is_of_program, files), self.batch, millionths):
            self.report(patch)
