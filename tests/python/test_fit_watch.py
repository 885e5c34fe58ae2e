# SPDX-License-Identifier: Apache-2.0
"""When `cuwhy fit` ends a training: its memory has settled, or is known to grow."""

import importlib.util
import os
import pathlib
import unittest
from unittest import mock

MODULE = pathlib.Path(__file__).parents[2] / "src" / "fit" / "sitecustomize.py"
LONG = 100000


def load():
    spec = importlib.util.spec_from_file_location("fit_module", MODULE)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ, {"CUWHY_FIT_STEPS": "all"}):   # it is not to watch this process
        spec.loader.exec_module(module)
    return module


class Cuda:
    """One GPU with these figures."""

    def __init__(self):
        self.now = self.peak = self.reserved = 0

    def is_initialized(self):
        return True

    def device_count(self):
        return 1

    def memory_allocated(self, _):
        return self.now

    def max_memory_allocated(self, _):
        return self.peak

    def max_memory_reserved(self, _):
        return self.reserved


class Watched:
    """A training: what is in use after step N, the peak in it, and what is reserved then; `seconds` for each step."""

    def __init__(self, after, peak=lambda n: 0, reserved=lambda n: 0, seconds=0.01):
        self.figures, self.seconds = (after, peak, reserved), seconds

    def end(self, steps=0, most=0):
        """After how many steps it was ended, and whether it had settled. `most`: steps of another run."""
        module, cuda = load(), Cuda()
        clock = mock.Mock(return_value=0.0)

        stopped = []

        def stop(done, settled, _):
            stopped.append((done, settled))

        with mock.patch.object(module.time, "monotonic", clock), mock.patch.dict("sys.modules", {"torch": mock.Mock(cuda=cuda)}):
            watch = module.Watch(steps, most=most)
            watch.stop = stop
            for n in range(1, LONG):
                clock.return_value += self.seconds
                after, peak, reserved = (f(n) for f in self.figures)
                cuda.now, cuda.peak, cuda.reserved = after, max(cuda.peak, peak, after), max(cuda.reserved, reserved)
                watch.step(self)
                if stopped:
                    return stopped[0]
        return None


class FitWatch(unittest.TestCase):
    def test_what_stays_the_same_has_settled(self):
        self.assertEqual(Watched(lambda n: 100).end(), (12, True))
        self.assertEqual(Watched(lambda n: 100, lambda n: 500 if n == 1 else 700).end(), (12, True))     # the optimizer's state, from step 2 on

    def test_what_grows_in_every_step_is_never_settled(self):
        self.assertEqual(Watched(lambda n: 100 + n).end(), (1001, False))
        self.assertEqual(Watched(lambda n: 100 + n, seconds=1).end(), (50, False))
        self.assertEqual(Watched(lambda n: n << 34).end(), (64, False))     # no card has 1 TiB
        self.assertEqual(Watched(lambda n: 100, lambda n: 100 + n * n).end(), (1001, False))    # ten seconds, of 10 ms each

    def test_what_rises_now_and_then_is_waited_for(self):
        self.assertEqual(Watched(lambda n: 100 + n // 10).end(), (1001, False))
        self.assertEqual(Watched(lambda n: 100 + n // 10, seconds=3).end(), (50, False))
        self.assertEqual(Watched(lambda n: 100 + n // 30, seconds=3).end(), (12, True))     # nobody can know

    def test_beside_another_run_no_clock_decides(self):
        for seconds in (0.001, 0.01, 1, 60):
            self.assertEqual(Watched(lambda n: 100 + n, seconds=seconds).end(most=300), (301, False))   # one that takes as many ends by itself
            self.assertEqual(Watched(lambda n: 100 + n, seconds=seconds).end(most=12), (51, False))
            self.assertEqual(Watched(lambda n: 100, seconds=seconds).end(most=300), (12, True))

    def test_a_program_that_ends_by_itself_tells_its_steps(self):
        module = load()
        with mock.patch.dict("sys.modules", {"torch": mock.Mock(cuda=Cuda())}), mock.patch.object(module, "tell") as tell:
            watch = module.Watch(0)
            watch.end()
            tell.assert_not_called()    # no training
            for _ in range(7):
                watch.step(self)
            watch.end()
        tell.assert_called_once_with({"took": 7})

    def test_a_history_that_is_full_one_day_has_settled(self):
        self.assertEqual(Watched(lambda n: 100 + min(n, 20)).end(), (23, True))

    def test_three_times_the_longest_wait(self):
        rises = {1: 1, 2: 2, 12: 3}
        self.assertEqual(Watched(lambda n: max(v for k, v in rises.items() if k <= n)).end(), (42, True))

    def test_a_cache_that_grows_is_not_settled(self):
        self.assertEqual(Watched(lambda n: 100, reserved=lambda n: 100 + n, seconds=1).end(), (50, False))

    def test_so_many_steps_are_so_many(self):
        self.assertEqual(Watched(lambda n: 100).end(17), (17, True))
        self.assertEqual(Watched(lambda n: 100 + n).end(17), (17, False))
        self.assertEqual(Watched(lambda n: 100).end(7), (7, False))

    def test_a_pytorch_without_these_figures_runs_to_its_end(self):
        module = load()
        with mock.patch.dict("sys.modules", {"torch": mock.Mock(cuda=object())}):
            watch = module.Watch(0)
            watch.stop = mock.Mock()
            for _ in range(200):
                watch.step(self)
        watch.stop.assert_not_called()

    def test_a_step_of_two_optimizers_is_told_once(self):
        module, cuda, told = load(), Cuda(), []
        cuda.memory_stats = lambda _: {"allocation.all.allocated": cuda.now}
        with mock.patch.dict("sys.modules", {"torch": mock.Mock(cuda=cuda)}):
            watch = module.Watch(100)
            watch.stop = lambda done, settled, asked: told.append(list(asked))
            first, second = object(), object()
            for n in range(100):
                for optimizer in (first, second):
                    cuda.now += 5
                    watch.step(optimizer)
        self.assertEqual(told[0], [10 * n for n in range(36, 100)])

    def test_an_optimizer_that_is_made_anew_goes_on(self):
        module, ended, made = load(), [], []
        with mock.patch.dict("sys.modules", {"torch": mock.Mock(cuda=Cuda())}):
            watch = module.Watch(30)
            watch.stop = lambda done, settled, _: ended.append((done, len(made)))
            while not ended:
                made.append(object())
                for _ in range(5):
                    watch.step(made[-1])
        self.assertEqual(ended[0], (30, 6))

    def test_of_two_optimizers_the_one_that_is_ahead_counts(self):
        module, ended = load(), []
        with mock.patch.dict("sys.modules", {"torch": mock.Mock(cuda=Cuda())}):
            watch = module.Watch(6)
            watch.stop = lambda done, settled, _: ended.append(done)
            first, second = object(), object()
            for _ in range(3):
                for optimizer in (first, second, second):
                    watch.step(optimizer)
        self.assertEqual(ended[0], 6)
        self.assertEqual(watch.count[id(first)], 3)


if __name__ == "__main__":
    unittest.main()
