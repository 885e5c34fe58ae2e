# SPDX-License-Identifier: Apache-2.0
"""Trees of files for `cuwhy doctor --root`, made from a description."""


def build(path, scratch, built):
    raise NotImplementedError(path)


def release(scratch):
    pass
