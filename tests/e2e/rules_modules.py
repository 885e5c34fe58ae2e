# SPDX-License-Identifier: Apache-2.0
"""Whose memory it is, by module: PyTorch's classes have stand-ins with what the recorder reads of them. Real ones are in tests/torch."""
from rules_blocks import START, under
from rules_kinds import devices
from rules_recorder import find_pythons
from toolbox import same

MODULES = START + """
each, at = 4096, segment


def made():
    global at
    at += each
    torch.block_made(at - each, each, 1, 0)
    return at - each


class Module:
    def __init__(self):
        self.__dict__.update(_modules={}, _parameters={})

    def __setattr__(self, name, value):
        which = "_modules" if isinstance(value, Module) else "_parameters" if isinstance(value, Parameter) else None
        (self.__dict__[which] if which else self.__dict__)[name] = value

    def __getattr__(self, name):
        return self.__dict__["_modules"][name]

    def __call__(self, *args):
        return self.forward(*args)


class Parameter:
    pass


class Optimizer:
    pass


class Layer(Module):
    def forward(self, times=1):
        for _ in range(times):
            made()


class Layers(Module):
    def __init__(self, *layers):
        super().__init__()
        for number, layer in enumerate(layers):
            setattr(self, str(number), layer)


"""


def shown(box, program, python=None):
    """Blocks of each path at the end; None: no module is known."""
    if python:
        box.python = python
    run = under(box, MODULES + program)
    same(run.status, 0, run.err[-2000:])
    (device,) = devices(box, run, "--at", "end")
    same(sum(m["bytes"] for m in device["modules"]), device["allocated"], "modules add up to all tensors")
    found = {}
    for m in device["modules"]:
        found[m["path"]] = found.get(m["path"], 0) + m["bytes"] // 4096
    return found


TREE = """
class Block(Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = Layer(), Layers(Layer(), Layer())

    def forward(self):
        self.norm()
        for layer in self.mlp._modules.values():
            layer(3)
        made()


class Net(Module):
    def __init__(self):
        super().__init__()
        self.stem, self.h = Layer(), Layers(Block(), Block())

    def forward(self):
        self.stem(2)
        for block in self.h._modules.values():
            block()


net = Net()
made()
for _ in range(2):
    net()
"""


def rule__memory_is_told_by_module_on_every_python(box):
    for python in find_pythons().values():
        same(shown(box, TREE, python), {None: 1, "stem": 4, "h.0": 2, "h.0.norm": 2, "h.0.mlp.0": 6, "h.0.mlp.1": 6, "h.1": 2,
                                        "h.1.norm": 2, "h.1.mlp.0": 6, "h.1.mlp.1": 6}, python)


def rule__a_module_at_the_address_of_another_does_not_get_its_name(box):
    """Its predecessors are gone, and their memory is used again: the last one is called `last`, and has one block. Since 3.13, Python does not
    count the changes of dictionaries, and for some seconds one of the same class may be taken for its predecessor."""
    for python in [path for version, path in find_pythons().items() if version not in ("3.13", "3.14")]:
        found = shown(box, """
class Holder(Module):
    def forward(self):
        self.__dict__["_modules"]["one"]()


addresses = set()
for name in ["first"] * 200 + ["last"]:
    holder = Holder()
    holder.one = Layers()
    holder._modules["one"] = Layer()
    addresses.add(id(holder._modules["one"]))
    if name == "last":
        holder._modules["last"] = holder._modules.pop("one")
        Holder.forward = lambda self: self.__dict__["_modules"]["last"]()
    holder()
    holder._modules.clear()
    del holder
assert len(addresses) < 100, "no address was used again"
""", python)
        same(sum(found.values()), 201, "blocks")
        assert found.get("last", 0) <= 1 and found.get("one", 0) <= 200, (python, found)


def rule__a_module_that_is_given_to_another_one_is_called_what_that_calls_it(box):
    found = shown(box, """
import time


class Wrapper(Module):
    def forward(self):
        self._modules["inner"]()


class Net(Module):
    def forward(self):
        self._modules["fc"]()


net, wrapper = Net(), Wrapper()
net.fc = Layer()
net()
wrapper.inner = net
until = time.monotonic() + 3
while time.monotonic() < until:
    wrapper()
    torch.block_freed(at - each, each, 1, 0)
    at -= each
    time.sleep(0.005)
wrapper()
""")
    same(found, {"inner.fc": 2}, "what the layer made")


def rule__an_optimizers_state_is_its_parameters_modules(box):
    found = shown(box, """
class Linear(Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = Parameter(), Parameter()

    def forward(self):
        made()


class Net(Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Linear(), Linear()

    def forward(self):
        self.a(), self.b()


class Adam(Optimizer):
    def init(self, parameters):
        for p in parameters:
            made(), made()

    def step(self, p, q):
        made()


net = Net()
net()
parameters = [p for part in (net.a, net.b) for p in part._parameters.values()]
Adam().init(parameters[:3])
Adam().step(*parameters[:2])  # two are in hand: it is not known whose it is
net.b._parameters.clear()
Adam().init(parameters[3:])  # it is nobody's any more
""")
    same(found, {"a": 1 + 4, "b": 1 + 2, None: 1 + 2}, "state")
