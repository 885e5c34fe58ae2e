#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/pictures from report pages: pictures.py BUILD RECORDINGS [--only NAME].

RECORDINGS holds what `cuwhy run --gpu sim:h200 --out RECORDINGS/NAME python3 NAME.py` left of the programs, one folder each: gather of
examples, leak and fragmentation of docs/examples, with real PyTorch. The programs must still be where they ran, so that the pages can show
their lines.
"""
import argparse
import base64
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "browser"))
from driver import Browser  # noqa: E402

WIDTH, SCALE = 960, 1.25  # 1200 pixels, with text that is still legible where a site shrinks the picture
BYTES_MAX, ALL_MAX = 150 << 10, 1 << 20
TOP = ("header.top", "#verdict")
# picture: recording, light or dark, window width, elements from first to last, script to run before
PICTURES = {
    "illegal-access": ("gather", "light", WIDTH, TOP, ""),
    "illegal-access-fault": ("gather", "light", WIDTH, ("#fault",), ""),
    "fragmentation": ("fragmentation", "light", WIDTH, TOP, ""),
    "fragmentation-segments": ("fragmentation", "light", WIDTH, ("#ledger", "#map"), ""),
    "leak": ("leak", "light", WIDTH, TOP, ""),
    "leak-over-time": ("leak", "light", WIDTH, ("#timeline",), ""),
    "leak-over-time-dark": ("leak", "dark", WIDTH, ("#timeline",), ""),
    "leak-lines": ("leak", "light", WIDTH, ("#lines",), ""),
}

RECT = r"""
const boxes = arguments[0].map((s) => document.querySelector(s).getBoundingClientRect());
const top = Math.max(0, Math.min(...boxes.map((b) => b.top)) + scrollY - 8);
return { y: top, height: Math.max(...boxes.map((b) => b.bottom)) + scrollY + 10 - top };
"""

# Pixels as palette indices: the most frequent colors; all others become the nearest of these.
PALETTE = r"""
const [data, done] = arguments;
(async () => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + data)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const g = canvas.getContext("2d");
  g.drawImage(image, 0, 0);
  const pixels = new Uint32Array(g.getImageData(0, 0, image.width, image.height).data.buffer);
  const times = new Map();
  for (const p of pixels) times.set(p, (times.get(p) || 0) + 1);
  const part = (p, i) => (p >>> (8 * i)) & 255;
  const apart = (a, b) => [0, 1, 2].reduce((sum, i) => sum + (part(a, i) - part(b, i)) ** 2, 0);
  const often = [...times].sort((a, b) => b[1] - a[1]).map(([p]) => p);
  const palette = often.slice(0, 32);
  for (let near = 12; near >= 0; near -= 4) {
    for (const p of often)
      if (palette.length < 256 && palette.every((q) => apart(p, q) > near * near)) palette.push(p);
  }
  const number = new Map();
  for (const p of times.keys()) number.set(p, palette.reduce((best, q, i) => (apart(p, q) < apart(p, palette[best]) ? i : best), 0));
  let out = "";
  for (let i = 0; i < pixels.length; i += 8192) out += String.fromCharCode(...[...pixels.subarray(i, i + 8192)].map((p) => number.get(p)));
  done({ width: image.width, height: image.height, palette: palette.map((p) => [0, 1, 2].map((i) => part(p, i))), pixels: btoa(out) });
})().catch((error) => done({ error: String(error) }));
"""


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(image):
    width, pixels = image["width"], base64.b64decode(image["pixels"])
    rows = b"".join(b"\0" + pixels[at:at + width] for at in range(0, len(pixels), width))
    return b"\x89PNG\r\n\x1a\n" + b"".join((
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, image["height"], 8, 3, 0, 0, 0)),
        chunk(b"PLTE", bytes(part for color in image["palette"] for part in color)),
        chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")))


def squeeze(browser, data):
    browser.open("about:blank")
    image = browser.ask("POST", browser.session + "/execute/async", {"script": PALETTE, "args": [data]})
    if "error" in image:
        raise SystemExit(image["error"])
    return png_of(image)


def take(browser, page, scheme, width, selectors, before):
    browser.prefer(scheme)
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=SCALE, mobile=False)
    browser.open(page)
    browser.run(before)
    # a scroll bar would take room that the picture does not show
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=browser.run("return document.documentElement.scrollHeight"), deviceScaleFactor=SCALE, mobile=False)
    clip = browser.run(RECT, list(selectors))
    clip.update(x=0, width=width, scale=1)
    return browser.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("recordings")
    parser.add_argument("--only", default="", help="pictures whose names begin with this")
    given = parser.parse_args()
    folder, pages = os.path.join(ROOT, "docs", "pictures"), tempfile.mkdtemp(prefix="cuwhy-pictures-")
    os.makedirs(folder, exist_ok=True)
    try:
        with Browser(shutil.which("chromium"), shutil.which("chromedriver")) as browser:
            for name, (recording, *how) in PICTURES.items():
                source, page = os.path.join(given.recordings, recording), os.path.join(pages, recording + ".html")
                if not name.startswith(given.only) or not os.path.isdir(source):
                    print("pictures: %s left alone" % name)
                    continue
                subprocess.run([os.path.join(given.build, "cuwhy"), "report", "-o", page, source], check=True, stdout=subprocess.DEVNULL)
                data = squeeze(browser, take(browser, page, *how))
                with open(os.path.join(folder, name + ".png"), "wb") as stream:
                    stream.write(data)
                print("pictures: %-26s %4d KiB" % (name, (len(data) + 1023) >> 10))
    finally:
        shutil.rmtree(pages, ignore_errors=True)
    sizes = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)]
    if max(sizes, default=0) > BYTES_MAX or sum(sizes) > ALL_MAX:
        raise SystemExit("pictures: too large for documents: %d bytes in total, the largest %d" % (sum(sizes), max(sizes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
