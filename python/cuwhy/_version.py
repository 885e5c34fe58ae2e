# SPDX-License-Identifier: Apache-2.0
"""The package's version: that of the installed wheel, or of the checkout that it is in."""

from __future__ import annotations

import os
from importlib import metadata

_HERE = os.path.dirname(os.path.abspath(__file__))


def _installed() -> str:
    """A wheel elsewhere on the path is not this package."""
    try:
        found = metadata.distribution("cuwhy")
        here = os.path.realpath(str(found.locate_file("cuwhy"))) == os.path.realpath(_HERE)
        return found.version if here else ""
    except Exception:
        return ""


def _checkout() -> str:
    try:
        with open(os.path.join(_HERE, "..", "..", "VERSION"), encoding="ascii") as f:
            return f.read().strip()
    except (OSError, ValueError):
        return ""


def package_version() -> str:
    return _installed() or _checkout() or "unknown"
