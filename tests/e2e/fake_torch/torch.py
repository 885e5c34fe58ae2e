# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as the benchmarks' loops need, without a GPU: it computes nothing."""
import sys


class Anything:
    """Has every attribute, can be called, added and entered."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *_args, **_named):
        return Anything()

    def __add__(self, _other):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        return False


def __getattr__(name):
    return Anything() if not name.startswith("__") else "0"


sys.modules["torch.nn"] = nn = Anything()
__path__ = []
