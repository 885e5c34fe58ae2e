#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report page with a million blocks: how long it takes to make and to open, what it takes, and frames per second while zooming.

    bench_page.py [--build build] [--blocks 1000000] [--viz _memory_viz.py [--viz-program FOLDER]] [--rounds 3]

The snapshot is made up: tensors of 400 sizes with lives from one to a million events. Chromium draws without a GPU. Zooming is one
turn of the wheel in each frame, from the whole run to single blocks and back. `--viz` is PyTorch's own module (torch/cuda/_memory_viz.py):
its page of the same snapshot is made, timed and weighed. Its program comes from a CDN, which nothing here may ask; --viz-program has
it: torch/utils/viz/*.js of PyTorch's repository, and dist/d3.min.js of the package d3. It is put into the page, which is then opened and
zoomed in the same way. Needs no GPU.
"""
import argparse
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "snap"), os.path.join(HERE, "..", "browser")]
import make_snapshot  # noqa: E402
from driver import Browser  # noqa: E402

KIB = 1024

# One turn of the wheel a frame: in for a while, then out; the time of each frame is measured from the one before.
ZOOM = r"""
const canvas = document.querySelector(arguments[1]), steps = arguments[0], box = canvas.closest(".blocks");
if (box) box.focus(); // else the wheel scrolls the page
const r = canvas.getBoundingClientRect();
return new Promise((done) => {
  const frames = [];
  let last = 0, n = 0;
  const turn = (now) => {
    if (last) frames.push(now - last);
    last = now;
    if (n === 2 * steps) return done({ frames });
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: n < steps ? -30 : 30, clientX: r.left + r.width * 0.62, clientY: r.top + 100, bubbles: true, cancelable: true }));
    n++;
    requestAnimationFrame(turn);
  };
  requestAnimationFrame(turn);
});
"""
# what is zoomed, whether it is drawn, and steps: a frame of theirs may take a second
OURS = ".blocks canvas", "const b = document.querySelector('.blocks'); return b && b.dataset.ready === 'yes'", 120
THEIRS = "polygon", "return document.querySelector('polygon') !== null", 20


def mixed(a, blocks):
    """Tensors of many sizes; most live briefly, some for long, a few are kept."""
    code, rng = make_snapshot.Code(), random.Random(7)
    sizes = [512 * int(2 ** rng.uniform(0, 12)) for _ in range(400)]
    stacks = [make_snapshot.forward_stack(code, layer) for layer in range(48)]
    due = {}
    for n in range(blocks):
        for b in due.pop(n, ()):
            a.free(b)
        b = a.alloc(rng.choice(sizes), rng.choice(stacks))
        assert b, "the card is too small"
        life = int(2 ** rng.uniform(0, 11 if n % 50 else 20))
        due.setdefault(n + 1 + life, []).append(b)


def snapshot(path, blocks):
    a = make_snapshot.Allocator(80 << 30, (2, 11))
    mixed(a, blocks)
    make_snapshot.write(path, a.snapshot())
    return len(a.events)


def measured(command):
    """Seconds, those of CPU, and MiB of memory at most."""
    start = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit("%s failed" % command[0])
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / KIB


def of_children(pid):
    """MiB of a process and all that it started."""
    total = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, encoding="utf-8") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            if parent == pid:
                total += of_children(int(entry))
            elif int(entry) == pid:
                with open("/proc/%s/smaps_rollup" % entry, encoding="utf-8") as f:
                    total += next(int(line.split()[1]) for line in f if line.startswith("Pss:")) / KIB
        except (OSError, ValueError, StopIteration):
            pass
    return total


def seconds_of(pid):
    """CPU seconds of a process and all that it started, so far."""
    total = 0
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % entry, encoding="utf-8") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid:
                total += seconds_of(int(entry))
            elif int(entry) == pid:
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):
            pass
    return total


def program_of(folder, name):
    """A module of memory_viz's and those it imports, as one text. d3 is a global."""
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"^import \* as d3 from .*$", "", text, flags=re.M)
    text = re.sub(r'^import (\{[^}]*\}) from "https:.*$', r"const \1 = d3;", text, flags=re.M)
    text = re.sub(r'^import \{[^}]*\} from "\./(.*)";$', lambda found: program_of(folder, found.group(1)), text, flags=re.M)
    return re.sub(r"^export (?:\{[^}]*\};?|(?=function))", "", text, flags=re.M)


def put_inside(page, folder):
    """The page without anything to load."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    with open(os.path.join(folder, "d3.min.js"), encoding="utf-8") as f:
        library = f.read()
    line = re.search(r"^import \{add_local_files\} from .*$", text, re.M)
    program, library = (words.replace("</script", "<\\/script") for words in (program_of(folder, "MemoryViz.js"), library))
    text = text[:line.start()] + program + text[line.end():]
    with open(page, "w", encoding="utf-8") as f:
        f.write(text.replace("<head>", "<head><script>" + library + "</script>", 1))


def opened(page, what):
    with Browser(shutil.which("chromium"), shutil.which("chromedriver"), width=1200) as browser:
        browser.ask("POST", browser.session + "/timeouts", {"script": 280000, "pageLoad": 280000})
        browser.open("about:blank")
        before = of_children(browser.driver.pid)
        start, cpu = time.monotonic(), seconds_of(browser.driver.pid)
        browser.open(page)
        while not browser.run(what[1]):
            time.sleep(0.02)
        ready, cpu = time.monotonic() - start, seconds_of(browser.driver.pid) - cpu
        memory = of_children(browser.driver.pid) - before
        time.sleep(5)    # until the pictures are made
        used = seconds_of(browser.driver.pid)
        seen = browser.run(ZOOM, what[2], what[0])
        used = seconds_of(browser.driver.pid) - used
    return ready, cpu, memory, seen, used


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    return "%d cores of %s" % (os.cpu_count(), model)


def show_opened(whose, page, rounds, what):
    for _ in range(rounds):
        ready, cpu, memory, seen, used = opened(page, what)
        frames = sorted(seen["frames"])
        print("%s: drawn after %.2f s, %.2f s of CPU, %.0f MiB in the browser; zooming: %.1f frames per second, slowest frame %.0f ms, median %.1f ms; %.1f ms of CPU for a frame, all processes of Chromium together; load %.1f" %
              (whose, ready, cpu, memory, 1000 * len(frames) / sum(frames), frames[-1], frames[len(frames) // 2], 1000 * used / len(frames), os.getloadavg()[0]), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--blocks", type=int, default=1000000)
    parser.add_argument("--viz")
    parser.add_argument("--viz-program", metavar="FOLDER", help="its program, to open that page")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="leave snapshot and page in this folder")
    given = parser.parse_args()
    folder = given.keep or tempfile.mkdtemp(prefix="cuwhy-bench-page-")
    os.makedirs(folder, exist_ok=True)
    try:
        source, page = os.path.join(folder, "million.pickle"), os.path.join(folder, "million.html")
        if not os.path.exists(source):
            make = multiprocessing.Process(target=snapshot, args=(source, given.blocks))    # a process of its own: its memory counts for no other
            make.start()
            make.join()
        print("machine: %s, load %.1f; %d blocks, snapshot of %.0f MiB" % (machine(), os.getloadavg()[0], given.blocks, os.path.getsize(source) / KIB / KIB))
        took, cpu, memory = measured([os.path.join(given.build, "cuwhy"), "report", "-o", page, source])
        print("cuwhy report: %.1f s, %.1f s of CPU, %.0f MiB of memory; page of %.1f MiB" % (took, cpu, memory, os.path.getsize(page) / KIB / KIB))
        show_opened("page", page, given.rounds, OURS)
        if given.viz:
            theirs = os.path.join(folder, "viz.html")
            took, cpu, memory = measured([sys.executable, given.viz, "trace_plot", source, "-o", theirs])
            print("memory_viz: %.1f s, %.1f s of CPU, %.0f MiB of memory; page of %.1f MiB" % (took, cpu, memory, os.path.getsize(theirs) / KIB / KIB))
            if given.viz_program:
                put_inside(theirs, given.viz_program)
                show_opened("memory_viz's page", theirs, given.rounds, THEIRS)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
