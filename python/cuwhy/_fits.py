# SPDX-License-Identifier: Apache-2.0
"""The batch that would have fit, after PyTorch ran out of memory.

What the card has for PyTorch is divided into what stays (parameters, gradients, optimizer state) and what grows with the batch. A step that
failed has not asked for all that it needs. What is still to come is estimated from the modules that had not run yet; a trial measures it."""

from __future__ import annotations

import dis
import re
import sys
import traceback
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import _live
from ._exceptions import chain
from ._program import Deadline

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = r"([\d.]+) (bytes|KiB|MiB|GiB|TiB)"
_REQUEST = re.compile(r"Tried to allocate " + _SIZE)
_DEVICE = re.compile(r"GPU (\d+) has a total capacity")
_FREE = re.compile(r"of which " + _SIZE + r" is free")
_ALLOCATED = re.compile(_SIZE + r" is allocated by PyTorch")
_CACHE = re.compile(_SIZE + r" is reserved by PyTorch but unallocated")
_STAY = ("parameters", "gradients", "optimizer", "graphs", "workspaces", "loaded")
_LOSS = 3  # the last output is there again as a float, in the loss, and as its gradient
_MARGIN = 0.03  # of what grows: sizes are rounded up, and gaps remain
_LEAST = 0.1  # how much of a step had run when that cannot be told from its beginning
_STEP = 16  # at least one part in so many less than what failed; half of that for a batch that was our own estimate
_ROUNDED = 64 << 20  # the sizes in PyTorch's message have two decimals


class Fits(int):
    """The largest batch that would have fit; 0: not even 1, or a smaller one does not help (`because`)."""

    exact: bool
    """It was tried, and the next one does not fit. Else it is an estimate."""
    because: str
    """How it was found."""
    stays: Optional[int]
    """Bytes that do not depend on the batch; None: not known."""
    scales: Optional[int]
    """Bytes for each of the batch, as far as they are known."""

    def __new__(cls, batch: int, exact: bool, because: str, stays: Optional[int] = None,
                scales: Optional[int] = None) -> "Fits":
        self = super().__new__(cls, batch)
        self.exact, self.because, self.stays, self.scales = exact, because, stays, scales
        return self


class _Oom(NamedTuple):
    """What PyTorch's message says, in bytes."""

    device: int
    request: int
    room: int  # for PyTorch: its memory, its cache, and what was free
    allocated: int


def _size(found: Optional["re.Match[str]"]) -> Optional[int]:
    return None if found is None else int(float(found.group(1)) * _UNITS[found.group(2)])


def _read(text: str) -> Optional[_Oom]:
    request, free, allocated, cache = (_size(p.search(text)) for p in (_REQUEST, _FREE, _ALLOCATED, _CACHE))
    device = _DEVICE.search(text)
    if request is None or free is None or allocated is None:
        return None
    return _Oom(int(device.group(1)) if device else 0, request, free + allocated + (cache or 0), allocated)


def request_of(text: str) -> Optional[int]:
    """Bytes that could not be allocated."""
    return _size(_REQUEST.search(text))


# --- the model, as the frames of the exception show it ----------------------------------------------


def _traces(exc: BaseException) -> Iterator[Any]:
    trace = exc.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _frames(exc: BaseException) -> Iterator[Any]:
    return (trace.tb_frame for trace in _traces(exc))


def _names(frame: Any) -> Dict[str, Any]:
    """Its variables. Up to Python 3.12, a function that is looked at keeps a copy of them: in one that still runs, such as the one that
    handles the exception, that copy would keep the exception and the tensors of the failed step."""
    at: Any = sys._getframe()
    while at is not None:
        if at is frame:
            return {}
        at = at.f_back
    return dict(frame.f_locals)


def _is_module(value: Any) -> bool:
    module = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
    return module is not None and issubclass(type(value), module)


class _Model(NamedTuple):
    root: Any
    running: Any  # the innermost module whose forward was running; None: forward was over
    ran: Tuple[str, ...] = ()  # its parts that its code had used by then


def _used(trace: Any, names: List[str]) -> Tuple[str, ...]:
    """Of these attributes, those that stand before the place where the code is."""
    code = dis.get_instructions(trace.tb_frame.f_code)
    return tuple(i.argval for i in code if i.offset < trace.tb_lasti and i.opname.startswith("LOAD_") and i.argval in names)


def _model(exc: BaseException) -> Optional[_Model]:
    """By the frames: the outermost module whose forward was running, else the largest that a frame or the program's file names."""
    root, running, last = None, None, None
    named: List[Any] = []
    for trace in _traces(exc):
        names = _names(trace.tb_frame)
        if _is_module(names.get("self")):
            running, last = names["self"], trace
            root = running if root is None else root
        if trace.tb_frame.f_globals.get("__name__") == "__main__":
            names.update(trace.tb_frame.f_globals)
        named += [value for value in names.values() if _is_module(value)]
    if running is not None:
        return _Model(root, running, _used(last, [name for name, _ in running.named_children()]))
    return _Model(max(named, key=lambda m: sum(1 for _ in m.modules())), None) if named else None


def _is_leaf(module: Any) -> bool:
    return next(iter(module.children()), None) is None


def _pair(value: Any) -> Tuple[float, ...]:
    return tuple(float(v) for v in value) if isinstance(value, (tuple, list)) else (float(value),) * 2


def _product(values: Tuple[float, ...]) -> float:
    out = 1.0
    for v in values:
        out *= v
    return out


def _costs(root: Any) -> List[Tuple[Any, float]]:
    """The modules without parts, in order, and how much each puts out, as far as its shape tells: channels × area, features."""
    area, width, found = 1.0, 1.0, []
    for module in root.modules():
        own = [p for p in module.parameters(recurse=False) if p.dim() == 2]
        if not _is_leaf(module):
            if own:  # weights of its own beside its parts: the projections of attention
                found.append((module, float(sum(p.shape[0] for p in own)) * (area or 1.0)))
            continue
        name = type(module).__name__.lower()
        wide = next((getattr(module, key) for key in ("out_channels", "out_features", "embedding_dim", "num_features",
                                                      "hidden_size") if hasattr(module, key)), None)
        stride = getattr(module, "stride", None)
        if stride is not None and _product(_pair(getattr(module, "kernel_size", 1))) > 1:
            area *= _product(_pair(stride)) if "transpose" in name else 1 / max(_product(_pair(stride)), 1.0)
        if "upsample" in name and getattr(module, "scale_factor", None):
            area *= _product(_pair(module.scale_factor))
        if "adaptive" in name:
            area = 0.0
        width = float(wide) if isinstance(wide, int) else width
        found.append((module, width * (area if area else 1e-3)))
    return found


def _done(model: _Model) -> float:
    """Which share of what forward keeps was there when it failed, from 0 to 1."""
    costs = _costs(model.root)
    inside = {id(m) for m in model.running.modules()}
    ran = {id(m) for name, part in model.running.named_children() if name in model.ran for m in part.modules()}
    places = [i for i, (m, _) in enumerate(costs) if id(m) in inside]
    used = [i for i in places if id(costs[i][0]) in ran]
    if not places:
        return 1.0
    before = sum(c for _, c in costs[:(used[-1] if used else places[0]) + 1])
    total = sum(c for _, c in costs) + (_LOSS - 1) * costs[-1][1]
    return before / total if total else 1.0


# --- what stays, and what is still to come that does not depend on the batch ------------------------


def _optimizers() -> List[Any]:
    import gc
    base = getattr(getattr(sys.modules.get("torch"), "optim", None), "Optimizer", None)
    return [o for o in gc.get_objects() if base is not None and issubclass(type(o), base)]


def _bytes(tensors: Iterator[Any], device: int) -> int:
    found: Dict[int, int] = {}
    for t in tensors:
        if t is not None and getattr(t, "is_cuda", False) and t.device.index == device:
            found[t.data_ptr()] = t.numel() * t.element_size()
    return sum(found.values())


def _states(optimizer: Any) -> int:
    """How many tensors of the size of a parameter it makes in its first step."""
    d = optimizer.defaults
    if "betas" in d:
        return 3 if d.get("amsgrad") else 2
    return 1 if d.get("momentum") or "lr_decay" in d or "rho" in d or "alpha" in d else 0


class _Fixed(NamedTuple):
    now: int
    more: int


def _fixed(model: Optional[_Model], oom: _Oom, deadline: Deadline) -> Optional[_Fixed]:
    optimizers = _optimizers()
    mine = list(model.root.parameters()) if model is not None else []
    trained = {id(p): p for o in optimizers for g in o.param_groups for p in g["params"]}
    everything = list({**{id(p): p for p in mine}, **trained}.values())
    known = _live.kinds(oom.device, deadline)
    if known is not None:
        now = sum(known.get(k, 0) for k in _STAY)
    elif everything:
        buffers = list(model.root.buffers()) if model is not None else []
        kept = [v for o in optimizers for s in o.state.values() if isinstance(s, dict) for v in s.values()]
        now = _bytes(iter(everything + buffers + [p.grad for p in everything] + kept), oom.device)
    else:
        return None
    gradients = _bytes((p for p in trained.values() if p.requires_grad and p.grad is None), oom.device)
    states = sum(_states(o) * _bytes((p for g in o.param_groups for p in g["params"]), oom.device)
                 for o in optimizers if not o.state)
    return _Fixed(now, gradients + states)


def _phase(exc: BaseException, model: Optional[_Model]) -> str:
    if not (model.root.training if model is not None else _optimizers()):
        return "alone"
    if any("/torch/autograd/" in f.f_code.co_filename or "/torch/optim/" in f.f_code.co_filename for f in _frames(exc)):
        return "backward"
    if any(f.f_code.co_filename.endswith("/torch/utils/checkpoint.py") for f in _frames(exc)):
        return "checkpoint"
    return "forward" if model is not None and model.running is not None else "loss"


def _share(phase: str, model: Optional[_Model], held: int, request: int) -> Tuple[float, str]:
    """How much of what grows with the batch had been asked for, and how that is known."""
    if phase == "backward":
        return 1.0, "forward was over, and backward is taken to need what it held when it failed"
    if phase == "checkpoint":
        return 1.0, "what was held at the failure, scaled down; checkpoints keep little, so what was to come is not known"
    if phase == "alone":
        return 1.0, "what was held at the failure, scaled down; what would have come after it is not known"
    if phase == "forward" and model is not None:
        done = max(_done(model), _LEAST)
        return done, f"forward had got to about {done:.0%} of what it keeps, by the shapes of its modules"
    if held < request:
        return _LEAST, "forward had hardly begun"
    return (held + request) / (held + 2 * request), "forward was over, and the last output will have a gradient"


class _Last:
    named = 0


def _estimate(exc: BaseException, oom: _Oom, batch: int, deadline: Deadline) -> Optional[Fits]:
    model = _model(exc)
    fixed = _fixed(model, oom, deadline)
    if fixed is None or fixed.now > oom.allocated + _ROUNDED:
        return None
    held = max(oom.allocated - fixed.now, 0)
    share, why = _share(_phase(exc, model), model, held, oom.request)
    each = (held + oom.request) / share / batch * (1 + _MARGIN)
    largest = max(int((oom.room - fixed.now - fixed.more) / each), 0) if each > 0 else 0
    # an estimate that is too high must not come down by one at a time
    parts = _STEP // 2 if batch == _Last.named else _STEP
    _Last.named = min(largest, batch - max(batch // parts, 1))
    return Fits(_Last.named, False, why, fixed.now + fixed.more, int(each))


# --- a trial -------------------------------------------------------------------------------------------


def _forget(exc: BaseException) -> None:
    """The frames of the exception hold the tensors of the failed step; those that were looked at have a copy of their names, too."""
    for e in chain(exc):
        traceback.clear_frames(e.__traceback__)
        for frame in _frames(e):
            frame.f_locals  # up to Python 3.12, this brings the copy up to date


def _try(step: Callable[[int], Any], batch: int, oom_type: Any) -> bool:
    cuda: Any = getattr(sys.modules["torch"], "cuda")
    cuda.empty_cache()
    try:
        step(batch)
        cuda.synchronize()
        return True
    except oom_type as e:
        _forget(e)
    cuda.empty_cache()
    return False


def _search(step: Callable[[int], Any], guess: int, batch: int, oom_type: Any, deadline: Deadline) -> Optional[Fits]:
    """By halves between the largest that ran and the smallest that did not; the first try is the estimate."""
    low, high, at = 0, batch, min(max(guess, 1), batch - 1)
    for _ in range(64):
        if high - low <= 1 or deadline.passed():
            break
        if _try(step, at, oom_type):
            low = at
            at = min(low + max(low // 16, 1), high - 1) if high == batch else (low + high) // 2
        else:
            high = at
            at = (low + high) // 2 if low else max(at * 3 // 4, 1) if at > 1 else 0
        if at <= low:
            at = low + 1
    exact = high - low <= 1
    return Fits(low, exact, f"a step with {low} ran, one with {high} did not" if low else "not even a step with 1 ran") if low or exact else None


# --- the answer ------------------------------------------------------------------------------------------


def batch_for(found: BaseException, batch: int, step: Optional[Callable[[int], Any]], timeout: float) -> Optional[Fits]:
    """The largest batch that would have fit beside what was in memory; None: it cannot be told. See cuwhy.fits."""
    if batch == 1:
        return Fits(0, True, "it failed with a batch of 1")
    torch: Any = sys.modules.get("torch")
    oom = _read(str(found))
    guess = _estimate(found, oom, batch, Deadline(timeout)) if oom is not None else None
    if step is None or torch is None:
        return guess
    _forget(found)
    return _search(step, int(guess) if guess else batch // 2, batch, type(found), Deadline(timeout))
