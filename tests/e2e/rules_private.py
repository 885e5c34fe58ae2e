# SPDX-License-Identifier: Apache-2.0
"""Secrets and home folders in what a program says, and every way by which an answer leaves the machine."""
import os
import re

import harness
from toolbox import same

SECRETS = {
    "login": "https://bob:%s@host/x", "variable": "HF_TOKEN=%s", "issued": "hf_%sAbCdEfGhIjKlMnOp1", "named": "password=%s",
    "quoted": "{'api_key': '%s'}", "escaped": '{"client_secret": "%s"}', "header": "Authorization: Bearer %s",
    "signed": "https://host/?v=1&sig=%s", "option": "--token %s", "aws": "AKIA%sABCDEFGHIJ", "openai": "sk-%sAbCdEfGhIjKlMnOp",
}
PLUGH = "plugh%02d"

PROGRAM = """
import cudrv
cudrv.init()
text = %r  # its own line is quoted, too
try:
    cudrv.alloc(1 << 44)
except cudrv.CudaError as error:
    raise RuntimeError("CUDA error: out of memory: /home/xyzzy/data " + text) from error
"""


def secrets():
    return " ".join(form % (PLUGH % i) for i, form in enumerate(SECRETS.values()))


def fails_with_secrets(box):
    argv = box.script(PROGRAM % secrets()) + ["--api-key", PLUGH % 90, "--password=" + PLUGH % 91]
    run = box.under(argv)
    same(run.status, 1, "status")
    return run


def told(box, *argv):
    done = harness.Run([box.cuwhy, *argv], box.env())
    assert done.status < 2, done.err
    return done.out


def none_in(text, what, *more):
    same(re.findall("|".join(("plugh[0-9]+",) + more), text), [], "secrets in " + what)


def rule__an_answer_holds_no_secrets_of_the_program(box):
    run = fails_with_secrets(box)
    verdict = box.verdict(run)
    assert "out of memory: /home/xyzzy/data" in verdict["error"]["text"], verdict["error"]
    for argv in (("explain", run.folder), ("explain", "--json", run.folder), ("memory", run.folder), ("memory", "--json", run.folder)):
        none_in(told(box, *argv), " ".join(argv[:-1]))
    with open(os.path.join(run.folder, "verdict.json"), encoding="utf-8") as stream:
        none_in(stream.read(), "verdict.json")


def rule__a_quoted_log_holds_no_secrets(box):
    run = box.plain_sim(box.script(PROGRAM % secrets()))
    path = os.path.join(box.scratch, "program.log")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(run.err)
    assert "plugh00" in run.err, run.err
    for argv in (("explain", path), ("explain", "--json", path)):
        none_in(told(box, *argv), " ".join(argv[:-1]))


def rule__pages_and_exports_hold_neither_secrets_nor_names_of_homes(box):
    run = fails_with_secrets(box)
    for name, argv in (("page.html", ("report",)), ("issue.md", ("report", "--markdown")), ("trace.json", ("export", "--chrome-trace"))):
        path = os.path.join(box.scratch, name)
        told(box, *argv, "-o", path, run.folder)
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        assert "/home/user/data" in text or name == "issue.md", name  # which quotes no command line
        none_in(text, name, "xyzzy")


CODE = """
import cudrv, os
cudrv.init()
def login(**more): pass
password = "plugh00"
os.environ["HF_TOKEN"] = "plugh01"
db = {"password" : "plugh02"}
login(api_key = "plugh03")
cudrv.launch(cudrv.kernel("nop"), (1, 80000), (1,)); aws_secret_access_key = "plugh04"
client_secret = '''
plugh05
'''
user, password = "bob", "plugh06"
"""


def rule__secrets_in_the_code_around_a_failure_stay_there(box):
    """The page quotes the lines around the failing one, and a line may be the middle of a text that began above it."""
    job = os.path.join(box.scratch, "job")
    run = box.under(box.script(CODE) + ["--wandb-key", "plugh07"], "--job", job, CUWHY_JOB_ID="1", RANK="0")
    same(run.status, 1, "status")
    for argv in (("explain", run.folder), ("explain", "-v", run.folder), ("explain", "--json", run.folder), ("report", "--markdown", run.folder)):
        none_in(told(box, *argv), " ".join(argv[:-1]))
    page = os.path.join(box.scratch, "page.html")
    told(box, "report", "-o", page, run.folder)
    shared = [os.path.join(folder, name) for folder, _, names in os.walk(job) for name in names]
    assert shared, "the job folder is empty"
    for path in [page, os.path.join(run.folder, "verdict.json")] + shared:
        with open(path, "rb") as stream:
            text = stream.read().decode(errors="replace")
        none_in(text, os.path.basename(path))
        assert path != page or "os.environ" in text, "the page quotes no code"
