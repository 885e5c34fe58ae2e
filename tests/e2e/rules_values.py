# SPDX-License-Identifier: Apache-2.0
"""The values behind a failed index check without a dump of the memory: what the program copied to the GPU, and never anything else."""
import os
import re
import subprocess

from rules_private import told
from toolbox import each, same

START = """
import ctypes, os, threading
import cudrv
from cudrv import u64, f32, i32
cudrv.init()
gather, copy, scale = cudrv.kernel("gather"), cudrv.kernel("copy"), cudrv.kernel("scale")
out, table = cudrv.alloc(1 << 18), cudrv.alloc(1 << 18)
size = ctypes.c_size_t
def index(*bad, n=64):
    list_ = (ctypes.c_int64 * n)(*range(10, 74))
    for place, value in bad:
        list_[place] = value
    return list_
put = cudrv.copy_in
def use(at, n=64):
    cudrv.launch(gather, (2,), (32,), u64(out), u64(table), u64(at), i32(n), i32(100))
at, other = cudrv.alloc(512), cudrv.alloc(512)
"""
END = "\ncudrv.synchronize()\n"

# name: the program; values, source, lines that made and copied it: those that end with # made and # copied; None: not known
PROGRAMS = {
    "a copy": ("put(at, index((37, 100)))  # made # copied\nuse(at)", "the index at position 37 is 100", "copy"),
    "the newest of several copies": (
        "put(at, index((3, 200)))\nput(at, index((37, 300)))  # made # copied\nuse(at)", "the index at position 37 is 300", "copy"),
    "one element on top": (
        "put(at, index())\nput(at + 8 * 9, (ctypes.c_int64 * 1)(-4))  # made # copied\nuse(at)", "the index at position 9 is -4", "copy"),
    "a copy on the GPU": (
        "put(other, index((37, 100)))  # copied\ncudrv.call('cuMemcpyDtoD_v2', u64(at), u64(other), size(512))  # made\nuse(at)",
        "the index at position 37 is 100", "copy"),
    "the source is changed afterwards": (
        "put(other, index((37, 100)))  # copied\ncudrv.call('cuMemcpyDtoD_v2', u64(at), u64(other), size(512))  # made\nput(other, index())\nuse(at)",
        "the index at position 37 is 100", "copy"),
    "any address to any other": (
        "put(at, index((37, 100)), 'cuMemcpy')  # made # copied\nuse(at)", "the index at position 37 is 100", "copy"),
    "a fill": (
        "put(at, index())\ncudrv.call('cuMemsetD32_v2', u64(at + 16), ctypes.c_uint(1), size(2))  # made\nuse(at)",
        "the index at position 2 is 4294967297", "copy"),
    "a kernel that reads it": (
        "put(at, index((37, 100)))  # made # copied\ncudrv.launch(copy, (1,), (32,), u64(out), u64(at), i32(8))\nuse(at)",
        "the index at position 37 is 100", "copy"),
    "a kernel of the same name that reads it likewise": (
        "put(at, index())\nuse(at)\nput(at, index((37, 100)))  # made # copied\nuse(at)", "the index at position 37 is 100", "copy"),
    "a kernel that may write it": (
        "put(at, index((37, 100)))\ncudrv.launch(scale, (1,), (32,), u64(at), f32(1), i32(8))\nuse(at)", None, None),
    "freed and allocated again": (
        "cudrv.free(other)\nput(at, index((37, 100)))\ncudrv.free(at)\nagain = cudrv.alloc(512)\nassert again in (at, other)\nuse(again)\nput(again, index())",
        None, None),
    "pinned memory": (
        "pinned = u64()\ncudrv.call('cuMemAllocHost_v2', ctypes.byref(pinned), size(512))\nhere = (ctypes.c_int64 * 64).from_address(pinned.value)\n"
        "ctypes.memmove(here, index((37, 100)), 512)\nput(at, here, 'cuMemcpyHtoDAsync_v2', None)  # made # copied\nuse(at)",
        "the index at position 37 is 100", "copy-unsure"),
    "memory of another process, too": (
        "put(at, index((37, 100)))  # made # copied\ncudrv.call('cuIpcGetMemHandle', (ctypes.c_char * 64)(), u64(at))\nuse(at)",
        "the index at position 37 is 100", "copy-unsure"),
    "another stream": (
        "put(at, index((37, 100)), 'cuMemcpyHtoDAsync_v2', cudrv.stream())  # made # copied\ncudrv.synchronize()\nuse(at)",
        "the index at position 37 is 100", "copy-unsure"),
    "the default stream of another thread": (
        "def put_there():\n    put(at, index((37, 100)), 'cuMemcpyHtoDAsync_v2_ptsz', None)  # made # copied\n"
        "thread = threading.Thread(target=with_context, args=(put_there,))\nthread.start()\nthread.join()\ncudrv.synchronize()\n"
        "cudrv.launch(gather, (2,), (32,), u64(out), u64(table), u64(at), i32(64), i32(100), stream=ctypes.c_void_p(2))",
        "the index at position 37 is 100", "copy-unsure"),
    "the default stream of the thread, then that of all": (
        "put(at, index((37, 100)), 'cuMemcpyHtoDAsync_v2_ptsz', None)  # made # copied\nuse(at)", "the index at position 37 is 100", "copy-unsure"),
    "the default stream of the thread": (
        "put(at, index((37, 100)), 'cuMemcpyHtoDAsync_v2_ptsz', None)  # made # copied\n"
        "cudrv.launch(gather, (2,), (32,), u64(out), u64(table), u64(at), i32(64), i32(100), stream=ctypes.c_void_p(2))",
        "the index at position 37 is 100", "copy"),
    "a copy that may return before it has arrived, and a stream that does not wait for it": (
        "put(at, index((37, 100)))  # made # copied\n"
        "cudrv.launch(gather, (2,), (32,), u64(out), u64(table), u64(at), i32(64), i32(100), stream=cudrv.stream())",
        "the index at position 37 is 100", "copy-unsure"),
    "a kernel of which little is known": (
        "class Table(ctypes.Structure):\n    _fields_ = [('bytes', ctypes.c_char * 320)]\nput(at, index((37, 100)))  # made # copied\n"
        "cudrv.launch(cudrv.kernel('table'), (1,), (32,), u64(out), Table(), i32(8))\nuse(at)", "the index at position 37 is 100", "copy-unsure"),
    "the beginning of a large copy": (
        "large = cudrv.alloc(1 << 18)\nput(large, index((37, 100), n=1 << 14))  # made # copied\nuse(large)", "the index at position 37 is 100", "copy"),
    "the end of a large copy": (
        "large = cudrv.alloc(1 << 18)\nput(large, index((16037, 100), n=1 << 14))  # made # copied\nuse(large + 8 * 16000)", None, None),
    "many copies since": (
        "put(at, index((37, 100)))  # made # copied\nlarge = (ctypes.c_char * (1 << 16))()\nfor i in range(80):\n    put(table, large)\nuse(at)", None, None),
    "managed memory, which the program writes": (
        "managed = u64()\ncudrv.call('cuMemAllocManaged', ctypes.byref(managed), size(512), ctypes.c_uint(1))\nput(managed.value, index((37, 100)))\n"
        "use(managed.value)", None, None),
    "a copy that is part of a graph": (
        "on = cudrv.stream()\nput(at, index())\ncudrv.begin_capture(on)\nput(at, index((37, 100)), 'cuMemcpyHtoDAsync_v2', on)\n"
        "cudrv.launch(gather, (2,), (32,), u64(out), u64(table), u64(at), i32(64), i32(100), stream=on)\ngraph = cudrv.end_capture(on)\n"
        "cudrv.run_graph(graph, on)", None, None),
    "the input of a graph": (
        "on = cudrv.stream()\ncudrv.begin_capture(on)\n"
        "cudrv.launch(gather, (2,), (32,), u64(out), u64(table), u64(at), i32(64), i32(100), stream=on)\ngraph = cudrv.end_capture(on)\n"
        "put(at, index((37, 100)))  # made # copied\ncudrv.run_graph(graph, on)", "the index at position 37 is 100", "copy-unsure"),
    "nothing was copied": ("use(at)\nput(at, index((37, 100)))", None, None),
    "threads": (
        "def busy(seed):\n    mine = cudrv.alloc(4096)\n    for i in range(300):\n        put(mine, (ctypes.c_char * (1 + (seed * 7919 + i * 104729) % 4000))())\n"
        "cudrv.call('cuCtxSetCurrent', context)\nthreads = [threading.Thread(target=with_context, args=(busy, k)) for k in range(6)]\n"
        "[t.start() for t in threads]\nput(at, index((37, 100)))  # made # copied\n[t.join() for t in threads]\nuse(at)",
        "the index at position 37 is 100", "copy"),
    "of three launches alike, the second": (
        "pinned = [u64() for _ in range(3)]\nlists = []\nfor one, bad in zip(pinned, ((), ((37, 100),), ())):\n"
        "    cudrv.call('cuMemAllocHost_v2', ctypes.byref(one), size(512))\n    lists.append((ctypes.c_int64 * 64).from_address(one.value))\n"
        "    ctypes.memmove(lists[-1], index(*bad), 512)\nfor list_ in lists:\n    put(at, list_, 'cuMemcpyHtoDAsync_v2', None)  # made # copied\n    use(at)",
        "the index at position 37 is 100", "copy-unsure"),
}
CONTEXT = """
context = ctypes.c_void_p()
cudrv.call("cuCtxGetCurrent", ctypes.byref(context))
def with_context(function, *args):
    cudrv.call("cuCtxSetCurrent", context)
    function(*args)
"""


def marked(text, word):
    lines = [n for n, line in enumerate(text.splitlines(), 1) if "# " + word in line]
    return lines[0] if lines else None


def line_of(said):
    return int(said.rsplit(":", 1)[1]) if said else None


@each(list(PROGRAMS))
def rule__values_are_what_was_copied_and_nothing_else(box, name):
    body, values, source = PROGRAMS[name]
    text = START + CONTEXT + body + END
    run = box.under(box.script(text), gpu="sim:h200")
    verdict = box.verdict(run)
    said = (verdict.get("fault") or {}).get("assert") or {}
    if name != "nothing was copied" and "freed" not in name:
        same(verdict["cause"], "index-out-of-range", name)
    same((said.get("values"), said.get("source")), (values, source), name)
    if marked(text, "made"):
        same(line_of(said.get("made")), marked(text, "made"), name + ": the line that made it")
        same(line_of(said.get("copied")), marked(text, "copied"), name + ": the line that copied it")


def rule__a_child_has_its_own_copies(box):
    text = ("import os\npid = os.fork()\n" + START + "bad = (37, 100) if pid == 0 else (37, 50)\nput(at, index(bad))\nuse(at)" + END +
            "if pid:\n    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n")
    verdict = box.verdict(box.under(box.script(text), gpu="sim:h200"))
    failed = [one for one in [verdict] + verdict.get("others", []) if one.get("fault")]
    same([one["fault"]["assert"]["values"] for one in failed], ["the index at position 37 is 100"], "the values of those that failed")


def rule__without_values_nothing_of_a_copy_is_kept(box):
    secret = b"xyzzy-plugh-0123456789"
    text = START + "put(table, (ctypes.c_char * %d)(*%r))\nput(at, index((37, 100)))\nuse(at)" % (len(secret), [bytes([c]) for c in secret]) + END

    def kept(run):
        found = b""
        for entry in os.listdir(run.folder):
            if entry.endswith(".cwr"):
                path = os.path.join(run.folder, entry)
                same(os.stat(path).st_mode & 0o777, 0o600, "the mode of the recording")
                with open(path, "rb") as stream:
                    found += stream.read()
        return secret in found
    run = box.under(box.script(text), gpu="sim:h200")
    same((kept(run), box.verdict(run)["fault"]["assert"]["value"]), (True, "100"), "by default")
    for options, env in ((["--no-values"], {}), ([], {"CUWHY_NO_VALUES": "1"})):
        run = box.under(box.script(text), *options, gpu="sim:h200", **env)
        said = box.verdict(run)["fault"]["assert"]
        same((kept(run), said.get("values"), said["places"]), (False, None, "the index at position 37"), "%s %s" % (options, env))


def rule__of_what_was_copied_only_the_blamed_value_leaves_the_recording(box):
    """Whole numbers of twelve digits that no address or size has: as text, or as their bytes."""
    others = [271828182800 + i for i in range(20)]
    text = START + "list_ = index((37, 314159265358))\nput(at, list_)\nput(table, (ctypes.c_int64 * 20)(*%r))\nuse(at)" % others + END
    run = box.under(box.script(text.replace("%r" % others, "[v + 271828182800 for v in range(20)]")), gpu="sim:h200")
    page, trace = os.path.join(box.scratch, "page.html"), os.path.join(box.scratch, "trace.json")
    subprocess.run([box.cuwhy, "report", "-o", page, run.folder], check=True, capture_output=True, env=box.env())
    subprocess.run([box.cuwhy, "export", "--chrome-trace", "-o", trace, run.folder], check=True, capture_output=True, env=box.env())
    shown = {"explain -v": told(box, "explain", "-v", run.folder), "json": told(box, "explain", "--json", run.folder), "stderr": run.err,
             "memory": told(box, "memory", "--json", run.folder)}
    for path in (page, trace, os.path.join(run.folder, "verdict.json"), os.path.join(run.folder, "run.json")):
        with open(path, encoding="utf-8", errors="replace") as stream:
            shown[os.path.basename(path)] = stream.read()
    assert "314159265358" in shown["explain -v"] and "314159265358" in shown["json"], shown["explain -v"]
    for name, words in shown.items():
        same(re.findall("2718281828(?!00)[0-9][0-9]", words), [], "contents of a copy in " + name)
        same(set(re.findall("index at position ([0-9]+)", words)) - {"37"}, set(), "other indices in " + name)
