#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what a command printed as a picture of a terminal.

    cuwhy explain --color always RECORDING | tools/terminal_svg.py '$ cuwhy run python kept_loss.py' > docs/pictures/kept-loss.svg

The text is what came in, letter for letter; only the colors that cuwhy uses are known (src/base/term.c).
"""
import html
import re
import sys

ROW, COLUMN, MARGIN = 18, 7.83, 16
LOOKS = {"0": "", "1": "b", "1;31": "e", "36": "c", "2": "d"}
STYLE = ("text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d4d7dd;white-space:pre}"
         ".b{font-weight:bold;fill:#fff}.e{font-weight:bold;fill:#ff6b68}.c{fill:#56c8d8}.d{fill:#8b919c}.p{fill:#8fce6a}")


def spans(line, look):
    """Pieces of a line with how they look, and how the next one begins."""
    out = []
    for piece in re.split(r"(\x1b\[[\d;]*m)", line):
        code = re.match(r"\x1b\[([\d;]*)m", piece)
        if code:
            look = LOOKS[code.group(1)]
        elif piece:
            out.append((look, piece))
    return out, look


def draw(lines):
    width = max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in lines)
    size = (int(width * COLUMN) + 2 * MARGIN, len(lines) * ROW + 2 * MARGIN)
    yield '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">' % (size * 2)
    yield "<style>%s</style>" % STYLE
    yield '<rect width="100%" height="100%" rx="8" fill="#1b1e24"/>'
    look = ""
    for i, line in enumerate(lines):
        pieces, look = spans(line, look)
        if not pieces:
            continue
        text = "".join('<tspan class="%s">%s</tspan>' % (how, html.escape(what)) if how else html.escape(what) for how, what in pieces)
        yield '<text x="%d" y="%d" xml:space="preserve">%s</text>' % (MARGIN, MARGIN + 13 + i * ROW, text)
    yield "</svg>"


def main():
    given = [line.rstrip() for line in sys.stdin.read().rstrip("\n").split("\n")]
    print("\n".join(draw(sys.argv[1:] + given)))


if __name__ == "__main__":
    main()
