# SPDX-License-Identifier: Apache-2.0
"""`python -m cuwhy …` is `cuwhy …`."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from ._program import CuwhyError, program


def main() -> NoReturn:
    try:
        path = program()
    except CuwhyError as e:
        print(f"cuwhy: {e}", file=sys.stderr)
        sys.exit(2)
    # Python ignores these two, and programs that `cuwhy run` starts would inherit that
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
