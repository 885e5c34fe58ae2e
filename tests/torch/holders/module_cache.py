# SPDX-License-Identifier: Apache-2.0
# keeps: keeps_features._CACHE
import os
import sys
import types

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


SOURCE = """
_CACHE = {}
def features(key, make):
    if key not in _CACHE:
        _CACHE[key] = make()
    return _CACHE[key]
"""


def load():
    module = types.ModuleType("keeps_features")
    module.__file__ = os.path.abspath(__file__)
    exec(SOURCE, vars(module))
    sys.modules["keeps_features"] = module
    return module


def main():
    features = load().features
    for n in range(10000):
        features("image-%d.png" % n, big)


main()
