# SPDX-License-Identifier: Apache-2.0
"""What `cuwhy fit` changes in a program while it runs, on as much of a PyTorch as that needs. With the real one: tests/torch/remedies.py."""

import contextlib
import importlib.util
import pathlib
import types
import unittest
from unittest import mock

MODULE = pathlib.Path(__file__).parents[2] / "src" / "fit" / "_cuwhy_changes.py"


class Tensor:
    def __init__(self, requires_grad=True):
        self.requires_grad, self.hooks = requires_grad, []

    def register_hook(self, hook):
        self.hooks.append(hook)

    def backward(self):
        for hook in self.hooks:
            hook(None)


class Module:
    """One whose forward is a function; `inner` are in it."""

    def __init__(self, forward=lambda x: Tensor(), inner=(), training=True):
        self.forward, self.inner, self.training = forward, inner, training

    def __call__(self, *args):
        return self.forward(*args)

    def children(self):
        return iter(self.inner)

    def modules(self):
        return iter([self, *self.inner])

    def parameters(self):
        return iter(())


class ModuleList(Module):
    pass


def fake_torch():
    torch = types.SimpleNamespace(Tensor=Tensor, dtype=int, device=int, float32=32, bfloat16=16, __file__="/lib/torch/__init__.py", grad=True)

    @contextlib.contextmanager
    def no_grad():
        torch.grad = False
        yield
        torch.grad = True

    torch.nn = types.SimpleNamespace(Module=Module, ModuleList=ModuleList, Sequential=ModuleList,
                                     modules=types.SimpleNamespace(batchnorm=types.SimpleNamespace(_BatchNorm=int)))
    torch.no_grad, torch.is_grad_enabled = no_grad, lambda: torch.grad
    torch.is_autocast_enabled = lambda: False
    torch._C = types.SimpleNamespace(_current_graph_task_id=lambda: -1)
    return torch


class FitChanges(unittest.TestCase):
    def setUp(self):
        spec = importlib.util.spec_from_file_location("fit_changes", MODULE)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.torch, self.told = fake_torch(), []
        patch = mock.patch.dict("sys.modules", {"torch": self.torch})
        patch.start()
        self.addCleanup(patch.stop)
        calls = mock.patch.object(Module, "__call__", Module.__call__)      # it is put back
        calls.start()
        self.addCleanup(calls.stop)

    def changes(self, *names, calls=()):
        changes = self.module.Changes(names, calls, self.told.append)
        changes.of_modules(types.SimpleNamespace(Module=Module))
        return changes

    def of(self, key):
        return [one for one in self.told if key in one]

    def test_an_optimizer_is_told_to_go_one_by_one(self):
        class Optimizer:
            def __init__(self, params, defaults):
                self.defaults = defaults

        changes = self.changes("foreach")
        changes.of_optimizers(types.SimpleNamespace(Optimizer=Optimizer))
        same = [{"lr": 1}, {"foreach": None, "fused": True}, {"foreach": False}]
        self.assertEqual([Optimizer([], one).defaults for one in same], same)
        self.assertEqual(self.of("able"), [])
        self.assertEqual(Optimizer([], {"foreach": None, "fused": None}).defaults["foreach"], False)
        self.assertEqual(Optimizer([], {"foreach": True}).defaults["foreach"], False)
        self.assertEqual(self.of("able"), [{"able": "foreach"}])

    def test_what_is_not_asked_for_is_only_told(self):
        class Optimizer:
            def __init__(self, params, defaults):
                self.defaults = defaults

        self.changes("bf16").of_optimizers(types.SimpleNamespace(Optimizer=Optimizer))
        self.assertIsNone(Optimizer([], {"foreach": None}).defaults["foreach"])
        self.assertEqual(self.of("able"), [{"able": "foreach"}])

    def train(self, changes, model, steps, other=lambda model: None):
        for _ in range(steps):
            model(1).backward()
            changes.step()
            other(model)
        changes.end(False)

    def test_a_call_that_backward_never_reaches_is_found(self):
        changes = self.changes("foreach")
        self.train(changes, Module(), 4, lambda model: model(2))
        self.assertEqual([(one["times"], one["file"]) for one in self.of("call")], [(4, __file__)])

    def test_a_call_of_the_last_steps_may_still_be_reached(self):
        changes, model = self.changes("foreach"), Module()
        self.train(changes, model, 4)
        model(2)
        changes.step()
        changes.end(False)
        self.assertEqual(self.of("call"), [])
        changes.step()
        changes.end(False)
        self.assertEqual(len(self.of("call")), 1)

    def test_a_program_that_ended_by_itself_calls_backward_no_more(self):
        changes = self.changes("foreach")
        Module()(2)
        changes.end(True)
        self.assertEqual(len(self.of("call")), 1)

    def test_a_backward_from_the_middle_of_a_model_counts(self):
        seen = []
        inner = Module(lambda x: seen.append(Tensor()) or seen[-1])
        outer = Module(lambda x: inner(x) and Tensor(), (inner,))
        changes = self.changes("foreach")
        for _ in range(4):
            outer(1)
            seen.pop().backward()
            changes.step()
        changes.end(False)
        self.assertEqual(self.of("call"), [])

    def test_what_cannot_be_looked_into_counts_as_reached(self):
        changes = self.changes("foreach")
        slots = type("Slots", (), {"__slots__": ("x",)})
        for output in ((Tensor(), slots()), [[[[[[[Tensor()]]]]]]]):
            Module(lambda _, output=output: output)(1)
        changes.end(True)
        self.assertEqual(self.of("call"), [])

    def test_an_output_without_a_graph_is_no_call_to_change(self):
        changes = self.changes("foreach")
        Module(lambda _: Tensor(False))(1)
        with self.torch.no_grad():
            Module()(1)
        changes.end(True)
        self.assertEqual(self.of("call"), [])

    def test_a_line_that_is_shared_with_a_call_that_is_reached_is_left(self):
        changes, model = self.changes("foreach"), Module()
        for n in range(4):
            out = model(1)      # the same line leads to both
            if n:
                out.backward()
            changes.step()
        changes.end(False)
        self.assertEqual(self.of("call"), [])

    def test_only_these_calls_run_without_a_graph(self):
        grad = []
        model = Module(lambda _: grad.append(self.torch.grad) or Tensor())

        def both():
            model(1).backward()
            model(2)

        for names in ("foreach", "no_grad"):
            changes = self.changes(names, calls=[one["call"] for one in self.of("call")])
            both()
            changes.end(True)
        self.assertEqual(grad, [True, True, True, False])

    def test_blocks_are_of_one_class_and_have_modules(self):
        leaf, block = Module, type("Block", (Module,), {})
        blocks = [block(inner=(leaf(),)) for _ in range(3)]
        found = self.module.blocks_of
        self.assertEqual(found(Module(inner=(ModuleList(inner=blocks),))), blocks)
        self.assertEqual(found(Module(inner=(ModuleList(inner=[leaf(), leaf()]),))), [])
        self.assertEqual(found(Module(inner=blocks)), [])
        stages = [type("Stage", (Module,), {})(inner=(ModuleList(inner=blocks),)) for _ in range(1)]
        stages += [type(stages[0])(inner=(ModuleList(inner=[block(inner=(leaf(),)) for _ in range(2)]),))]
        self.assertEqual(len(found(ModuleList(inner=stages))), 5)   # the blocks of both stages


if __name__ == "__main__":
    unittest.main()
