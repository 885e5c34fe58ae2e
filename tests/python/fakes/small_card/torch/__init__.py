# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch on a card of FAKE_ROOM MiB: what the programs of docs/examples use of it. Tensors are numbers of bytes."""

import os
import sys

ROOM = int(os.environ.get("FAKE_ROOM", "1024")) << 20
OTHER = 100 << 20
live = {"bytes": 0}


class OutOfMemoryError(RuntimeError):
    pass


def gib(n):
    return "%.2f GiB" % (n / 2 ** 30)


class Held:
    """Bytes of the card, for as long as somebody has them."""

    def __init__(self, size):
        if live["bytes"] + size > ROOM:
            raise OutOfMemoryError(
                "CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of %s of which %s is free. Including non-PyTorch "
                "memory, this process has %s memory in use. Of the allocated memory %s is allocated by PyTorch, and 0 bytes is reserved "
                "by PyTorch but unallocated." % (gib(size), gib(ROOM + OTHER), gib(ROOM - live["bytes"]), gib(live["bytes"] + OTHER),
                                                 gib(live["bytes"])))
        self.size = size
        live["bytes"] += size

    def __del__(self):
        live["bytes"] -= getattr(self, "size", 0)


class device:
    index = 0


class Tensor:
    is_cuda, device, requires_grad = True, device, True

    def __init__(self, *shape, graph=()):
        self.shape = shape
        self.held = Held(self.numel() * 4)
        self.graph, self.grad = graph, None

    def numel(self):
        n = 1
        for s in self.shape:
            n *= s
        return n

    def element_size(self):
        return 4

    def data_ptr(self):
        return id(self)

    def dim(self):
        return len(self.shape)

    def square(self):
        return Tensor(*self.shape, graph=(self, *self.graph))

    def mean(self):
        return Tensor(1, graph=(self, *self.graph))

    def backward(self):
        for t in self.graph:
            if isinstance(t, Parameter) and t.grad is None:
                t.grad = Tensor(*t.shape)


class Parameter(Tensor):
    pass


def randn(*shape, device=None):
    return Tensor(*shape)


class nn:
    class Module:
        training = True

        def __init__(self):
            self.parts, self.own = [], []

        def children(self):
            return iter(self.parts)

        def named_children(self):
            return ((str(i), part) for i, part in enumerate(self.parts))

        def modules(self):
            yield self
            for part in self.parts:
                yield from part.modules()

        def parameters(self, recurse=True):
            for m in self.modules() if recurse else [self]:
                yield from m.own

        def buffers(self):
            return iter(())

        def cuda(self):
            return self

        def __call__(self, x):
            return self.forward(x)

    class TransformerEncoderLayer(Module):
        def __init__(self, width, *args, **options):
            super().__init__()
            self.out_features, self.own = width, [Parameter(width, width)]

        def forward(self, x):
            return Tensor(*x.shape, graph=(x, *self.own, *x.graph))

    class TransformerEncoder(Module):
        def __init__(self, layer, n, **options):
            super().__init__()
            self.parts = [layer] + [type(layer)(layer.out_features) for _ in range(n - 1)]

        def forward(self, x):
            for part in self.parts:
                x = part(x)
            return x


sys.modules["torch.nn"] = nn


class optim:
    class Optimizer:
        def __init__(self, parameters, **defaults):
            self.param_groups, self.state, self.defaults = [{"params": list(parameters)}], {}, defaults

        def zero_grad(self):
            for p in self.param_groups[0]["params"]:
                p.grad = None

    class AdamW(Optimizer):
        def __init__(self, parameters, lr):
            super().__init__(parameters, lr=lr, betas=(0.9, 0.999))

        def step(self):
            for p in self.param_groups[0]["params"]:
                self.state.setdefault(p, {"exp_avg": Tensor(*p.shape), "exp_avg_sq": Tensor(*p.shape)})


class cuda:
    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def empty_cache():
        pass

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def mem_get_info():
        return ROOM - live["bytes"], ROOM


# --- on the host -----------------------------------------------------------------------------------


class Points(list):
    indices = property(lambda self: self)

    def cuda(self):
        return self

    def split(self, rows):
        return [self[:3], self[3:6]]

    def topk(self, n, largest):
        return self

    def __sub__(self, other):
        return Tensor(self.wanted, self.wanted, 3)

    def __getitem__(self, key):
        return self if isinstance(key, tuple) else Points(list.__getitem__(self, key))


def rand(n, _):
    points = Points(range(6))
    points.wanted = n
    return points


def cdist(a, b):
    return a


def cat(parts):
    return sum((list(p) for p in parts), [])
