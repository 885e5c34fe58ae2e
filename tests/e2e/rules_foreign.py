# SPDX-License-Identifier: Apache-2.0
"""Recordings that somebody else made: what `explain`, `report`, `memory` and `export` must not do, whatever is in them."""
import json
import os
import re
import shutil
import subprocess

import harness
from toolbox import same

LAUNCH = "cudrv.launch(cudrv.kernel('nop'), (1, 80000), (1,))"
SECRET = "machine github.com login me password ghp_0123456789abcdefghijklmnopqrstuvwxyz"


def failing(box, name, before=0):
    """A recording of a failure in line `before` + 1 of a file `name`, which need not exist."""
    text = "import cudrv\ncudrv.init()\nexec(compile(%r, %r, 'exec'))\n" % ("\n" * before + LAUNCH, name)
    run = box.under(box.script(text))
    same(box.verdict(run)["cause"], "launch-config-grid-limit", "cause")
    return run.folder


def readers(box, folder):
    return ([box.cuwhy, "explain", folder], [box.cuwhy, "explain", "--json", folder],
            [box.cuwhy, "report", "-o", os.path.join(box.scratch, "page.html"), "--force", folder],
            [box.cuwhy, "memory", folder], [box.cuwhy, "memory", "--at", "50%", folder],
            [box.cuwhy, "export", "--chrome-trace", "-o", os.path.join(box.scratch, "trace.json"), "--force", folder])


def all_read(box, folder, cwd=None):
    """Everything that the readers print and write, in the folder `cwd`."""
    told = []
    for argv in readers(box, folder):
        run = harness.Run(argv, box.env(), cwd=cwd or box.scratch)
        assert not run.timed_out, "%s: still running" % " ".join(argv[1:])
        assert run.code >= 0, "%s: ended by signal %d" % (" ".join(argv[1:]), -run.code)
        told += [run.out, run.err]
    for name in ("page.html", "trace.json"):
        path = os.path.join(box.scratch, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                told.append(f.read())
    return "\n".join(told)


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def rule__only_files_named_like_source_code_are_quoted(box):
    private = write(os.path.join(box.scratch, ".netrc"), SECRET + "\n")
    assert "LATER" not in all_read(box, failing(box, private)), "a line of a private file was quoted"


def rule__a_link_named_like_source_code_does_not_lead_to_other_files(box):
    write(os.path.join(box.scratch, ".netrc"), SECRET + "\n")
    link = os.path.join(box.scratch, "model.py")
    os.symlink(".netrc", link)
    assert "LATER" not in all_read(box, failing(box, link)), "a line behind a link was quoted"


def rule__lines_are_quoted_as_they_were_and_not_from_files_of_the_reader(box):
    """A recording carries the lines that its verdict quotes; a file that came there since is somebody else's."""
    name = os.path.join(box.scratch, "settings.py")
    own = write(name, "# one\n# two: QUOTED\n# three\n")
    folder = failing(box, own, before=1)
    write(name, "# one\nLATER = 'changed'\n# three\n")
    told = all_read(box, folder)
    assert "QUOTED" in told and "LATER" not in told, "the line as it was is not quoted, or the file was read again"
    for part in [n for n in os.listdir(folder) if n.endswith(".sources.json")]:
        os.unlink(os.path.join(folder, part))   # made elsewhere: it has no lines of this file
    assert "LATER" not in all_read(box, folder, cwd="/"), "a line of a file of the reader's was quoted"
    assert "LATER" in all_read(box, folder), "a file below the folder where the reader is was not quoted"


def rule__a_huge_source_is_not_read(box):
    name = os.path.join(box.scratch, "data.py")
    folder = failing(box, name, before=5)
    with open(name, "wb") as f:
        f.truncate(200 << 30)
    all_read(box, folder)


def rule__a_pipe_in_place_of_any_file_of_a_recording_does_not_hang_a_reader(box):
    folder = failing(box, os.path.join(box.scratch, "model.py"))
    part = next(n for n in os.listdir(folder) if n.endswith(".cwr"))[:-len(".cwr")]
    names = ["run.json", "verdict.json"] + [part + s for s in (".json", ".usage.json", ".ram.json", ".cwr", ".cudacore", ".cwm")]
    for name in names:
        copy = os.path.join(box.scratch, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        if os.path.exists(os.path.join(copy, name)):
            os.unlink(os.path.join(copy, name))
        os.mkfifo(os.path.join(copy, name))
        all_read(box, copy)


ALONE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code if code >= 0 else 128 - code)
"""


def rule__a_huge_run_json_takes_neither_the_memory_nor_the_time_of_the_reader(box):
    folder = os.path.join(box.scratch, "bomb")
    os.mkdir(folder)
    entry = '{"pid":1,"part":"a.cwr"},'
    for text in ('{"processes":[' + "0," * 10000000 + "0]}", '{"processes":[' + entry * 190000 + "{}]}",
                 '{"processes":' + "[" * 100000 + "]" * 100000 + "}", '{"processes":[' + " " * (100 << 20) + "]}"):
        write(os.path.join(folder, "run.json"), text)
        for argv in readers(box, folder):
            run = harness.Run([box.python, "-c", ALONE] + argv, box.env())      # other tests have children, too
            assert not run.timed_out and run.code < 128, (argv, run.code)
            most = int(run.err.splitlines()[-1])
            assert most <= 600 << 10, "%s: %d MiB" % (" ".join(argv[1:]), most >> 10)


def rule__a_device_is_not_read_as_a_log(box):
    for command in ("explain", "report", "memory"):
        run = harness.Run([box.cuwhy, command, "/dev/zero"], box.env())
        same((run.timed_out, run.status), (False, 2), command)


EVIL = "\x1b]0;title\x07\x1b[2J\u009b31m\u202e\r</script><script>alert(1)</script><!--"

SPITEFUL = r"""
import cudrv
E = %r
cudrv.init()
def f(): cudrv.launch(cudrv.kernel('nop'), (1, 80000), (1,))
f.__code__ = f.__code__.replace(co_name="f" + E, co_filename="/tmp/x" + E + ".py")
try:
    f()
except RuntimeError as e:
    raise RuntimeError("CUDA error: " + E + str(e))
""" % EVIL


def assert_harmless(text, what):
    bad = sorted({hex(ord(c)) for c in text if (ord(c) < 32 and c not in "\t\n") or 0x7f <= ord(c) < 0xa0 or
                  ord(c) in (0x202e, 0x2066, 0x200e)})
    assert not bad, "%s: %s" % (what, bad)


def rule__no_control_character_of_others_reaches_a_terminal(box):
    folder = os.path.join(box.scratch, "rec" + EVIL.replace("/", "") + "\udc9b")
    run = harness.Run([box.cuwhy, "run", "--gpu", "sim:tiny", "--out", folder, "--", *box.script(SPITEFUL), "arg" + EVIL],
                      box.env())
    at = run.err.index("cuwhy:")
    assert_harmless(run.err[at:], "run")
    for name in os.listdir(folder):         # somebody will print these files
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            json.loads(text)
            assert_harmless(text, name)
    as_json = harness.Run([box.cuwhy, "run", "--json", "--gpu", "sim:tiny", "--out", folder, "--force", "--", *box.script(SPITEFUL)], box.env())
    told = as_json.err.splitlines()[-1]
    assert_harmless(told, "run --json")
    assert "\u202e" in json.loads(told)["where"]["function"], told
    page = os.path.join(box.scratch, "page.html")
    log = write(os.path.join(box.scratch, "log"), "Traceback (most recent call last):\n  File \"/tmp/a%s.py\", line 3, in f%s\n    x%s\n"
                "RuntimeError: CUDA error: out of memory%s\n" % (EVIL, EVIL, EVIL, EVIL))
    spiteful = "/no/such" + EVIL + "\udc9b"
    for argv in (["explain", folder], ["explain", "--json", folder], ["explain", "--color", "always", log], ["memory", folder],
                 ["report", "-o", page, folder], ["explain", spiteful], ["explain", "-v", spiteful], ["memory", spiteful], ["report", spiteful],
                 ["explain", log], ["explain", "--json", log], ["no" + EVIL], ["run", spiteful], ["run", "--gpu", "sim:" + EVIL, "true"],
                 ["run", "--" + EVIL, "true"], ["doctor", "--python", spiteful], ["export", "--chrome-trace", spiteful]):
        run = harness.Run([box.cuwhy] + argv, box.env())
        told = re.sub(r"\x1b\[(0|1|1;31|36|2)m", "", run.out + run.err) if "--color" in argv else run.out + run.err
        assert_harmless(told, " ".join(argv[:2]).encode("ascii", "replace"))
    with open(page, encoding="utf-8") as f:
        text = f.read()
    assert "</script><script>alert" not in text, "a script got into the page"
    assert not [c for c in text if ord(c) < 32 and c not in "\t\n"], "control characters in the page"


def rule__readers_take_at_most_half_of_the_memory(box):
    with subprocess.Popen([box.cuwhy, "explain", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=box.env()) as child:
        child.stdin.write(b"RuntimeError: CUDA error: out of memory\n")
        child.stdin.flush()
        child.stdout.read(1)    # it passes on what it reads: it has begun
        with open("/proc/%d/limits" % child.pid, encoding="ascii") as f:
            limit = next(line.split()[3] for line in f if line.startswith("Max data size"))
        child.stdin.close()
        child.stdout.read()
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    has = 64 << 20      # more than it has when it sets the limit, which is for what comes after
    assert limit != "unlimited" and int(limit) <= max(most, 1 << 30) + has, limit
