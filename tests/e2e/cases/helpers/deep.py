# SPDX-License-Identifier: Apache-2.0
"""The failing call is some frames below the program's own."""
import cudrv


def outer(kernel, rows):
    return [inner(kernel, n) for n in (1, rows)]


def inner(kernel, rows):
    def launch():
        cudrv.launch(kernel, (1, 1, rows), (32,))  # <- here
    return launch()
