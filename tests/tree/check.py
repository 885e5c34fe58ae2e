# SPDX-License-Identifier: Apache-2.0
"""Plants violations in a copy of the tree: tools/check_source.py must see each of them, and nothing in the tree as it is. And in a labeled
report, for tools/collect.py; and a page that no index lists, for tools/check_docs.py."""
import os
import shutil
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_docs  # noqa: E402
import check_source  # noqa: E402
import collect  # noqa: E402

LONG = "x" * 170

# claim, check, file, text at its end
PLANTED = (
    ("a reader that knows another by a relative path", "layers", "src/read/text/line.h", '#include "../dump/dump.h"'),
    ("a reader that asks a finder", "layers", "src/read/text/line.c", '#include "find/words/log.h"'),
    ("a finder that asks for a verdict", "layers", "src/find/words/log.c", '#include "verdict/verdict.h"'),
    ("an include that turns back, in angle brackets", "layers", "src/find/words/log.c", "#include <verdict/verdict.h>"),
    ("an include with blanks", "layers", "src/case/case.h", ' #  include  "verdict/verdict.h"'),
    ("an include whose name is a macro", "layers", "src/case/case.h", "#include OTHER_HEADER"),
    ("an include in a table", "layers", "src/case/case.def", '#include "verdict/rules/rules.h"'),
    ("base that knows the simulated GPU", "layers", "src/base/buf.c", '#include "sim/cuda/sim.h"'),
    ("base that knows the recorder", "layers", "src/base/buf.c", '#include "recorder/rec.h"'),
    ("base that knows the recording", "layers", "src/base/buf.c", '#include "cuwhy/format.h"'),
    ("a case that knows the probe", "layers", "src/case/case.c", '#include "probe/usage.h"'),
    ("rules that know an input", "layers", "src/verdict/rules/rules.c", '#include "find/words/log.h"'),
    ("a judge that knows a writer", "layers", "src/verdict/opened.c", '#include "show/report.h"'),
    ("a recorder that knows the CLI", "layers", "src/recorder/rec_exit.c", '#include "base/buf.h"'),
    ("a simulated GPU that knows the recorder", "layers", "src/sim/cuda/sim_event.c", '#include "../../recorder/rec.h"'),
    ("a writer that sets a fact", "writers", "src/show/code.c", "\tfact_set_number(c, FACT_error_code, 1);"),
    ("a writer that adds evidence", "writers", "src/show/code.c", '\tcase_evidence((struct casefile *)c, "a", "b");'),
    ("a writer that observes", "writers", "src/show/code.c", "\tcase_observe(&v->c, GROUP_error);"),
    ("a writer that changes a verdict", "writers", "src/show/code.c", '\tverdict_evidence(v, "a", "b");'),
    ("a writer that could", "writers", "src/show/report.h", "void report_more(struct verdict *v);"),
    ("a case that calls back", "values", "src/case/case.h", "struct more {\n\tbool (*more)(const void *arg);\n};"),
    ("a case that calls back by another name", "values", "src/case/line.h", "struct more {\n\tknowledge_fn *more;\n};"),
    ("a case that points into a text", "values", "src/case/case.h", "struct more {\n\tconst struct text_log *more;\n};"),
    ("a case that points into a recording", "values", "src/case/ledger.h", "struct more {\n\tstruct {\n\t\tint x;\n\t} y;\n\tstruct trace *more;\n};"),
    ("a verdict that asks while it is judged", "values", "src/verdict/process.h", "struct more {\n\tvoid (*more)(struct casefile *c);\n};"),
    ("a verdict that could change a text", "values", "src/verdict/text.c", "static void more(struct text_log *l);"),
    ("a verdict that changes a text", "values", "src/verdict/source.c", "\tlog_finish(t->log);"),
    ("code that is too long", "columns", "src/base/buf.c", "\tint %s;" % LONG),
    ("a comment that is too long", "columns", "src/base/buf.c", "/* %s */" % LONG),
    ("a trailing comment that is too long", "columns", "src/base/buf.c", "\tint x;\t/* %s */" % LONG),
    ("a string that is too long, among code", "columns", "src/base/buf.c", '\tprintf("%s", "%s");' % ("%s", LONG)),
    ("tabs that make a line too long", "columns", "tests/unit/judge.h", "\t" * 18 + "int " + "x" * 20 + ";"),
    ("a signal to a number", "signals", "src/cmd/open_page.c", "\tkill(pid, SIGTERM);"),
    ("a signal to a number in a condition", "signals", "src/sim/cuda/sim_cards.c", "\tif (!kill(pid, 15))"),
    ("a signal to a group", "signals", "src/cmd/open_page.c", "\tkillpg(group, SIGTERM);"),
    ("a signal by system call", "signals", "src/recorder/rec_lock.c", "\tsyscall(SYS_tgkill, rec.pid, tid, SIGUSR1);"),
    ("a signal by descriptor, elsewhere", "signals", "src/run/run_hang.c", "\tsyscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);"),
    ("a signal of the Python package", "signals", "python/cuwhy/_live.py", "os.kill(pid, 15)"),
    ("a formatter that is turned off", "formatter", "src/base/buf.c", "/* clang-format off */"),
    ("an offset of CPython in the recorder", "offsets", "src/recorder/turns/rec_turns_iterators.c", "\titems = load(it, 24);"),
    ("an offset of CPython beside an address", "offsets", "src/recorder/rec_python_code.c", "\tmemcpy(&len, s + 16, sizeof(len));"),
    ("an offset of CPython in another process", "offsets", "src/read/live/pyproc.c", "\tremote_word(p->r, code + 8, &type);"),
    ("a cause without a test", "causes", "kb/causes/wish.md", "---"),
    ("a cause that is the beginning of another's id, without a test", "causes", "kb/causes/oom.md", "---"),
    ("a cause that is the end of another's id, without a test", "causes", "kb/causes/capacity.md", "---"),
)
# what may be, though it looks similar
ALLOWED = (
    ("a system header", "layers", "src/base/buf.c", "#include <sys/stat.h>"),
    ("a header of its own folder", "layers", "src/find/words/log.c", '#include "stream.h"'),
    ("one string, however long", "columns", "src/base/buf.c", '\t"%s",' % LONG),
    ("an address that cannot be broken", "columns", "src/base/buf.c", "/* https://example.org/%s */" % LONG),
    ("a question whether a process is there", "signals", "src/cmd/open_page.c", "\tif (kill(pid, 0) != 0 && errno == ESRCH)"),
    ("a signal to oneself", "signals", "src/cmd/open_page.c", "\traise(SIGTERM);"),
    ("a signal to a child", "signals", "src/cmd/open_page.c", "\tchild_signal(pid, SIGTERM);"),
    ("a case that has a case's structure", "values", "src/case/case.h", "struct more {\n\tconst struct ledger *more;\n};"),
    ("a function of the case that is given one", "values", "src/case/case.h", "void more(bool (*which)(const struct line *line));"),
    ("a verdict that reads a text", "values", "src/verdict/text.c", "static void more(const struct text_log *l, const struct text_event *e);"),
    ("a writer that reads", "writers", "src/show/code.c", "\tif (case_observed(&v->c, GROUP_error))"),
)

REPORT = {"id": "r-0", "source": "owner/repo#1", "label": "oom-capacity", "also": [], "env": "", "told_by": "text", "package": "torch", "why": "",
          "text": "/home/user/project/train.py:3\nRuntimeError: CUDA out of memory. See https://pytorch.org/docs"}
# claim, field, value, what is said about it
FLAWED = (
    ("a home folder", "text", "/home/jane/train.py", "text: a home folder: /home/jane"),
    ("a home folder on Windows", "text", "C:\\Users\\jane\\train.py", "text: a home folder: C:\\Users\\jane"),
    ("an address of a person", "env", "ask jane.doe@example.org", "env: an address: jane.doe@example.org"),
    ("a token", "text", "login with hf_abcdefghijklmnop", "text: a secret: hf_abc…"),
    ("a host", "text", "GET https://gpu7.corp.internal/x", "text: a host: gpu7.corp.internal"),
    ("a machine of a cluster", "text", "lab-gpu7:12:12 [0] NCCL INFO Bootstrap", "text: names that `add` would change"),
    ("a project's folder", "text", "/mnt/secretproject/src/a/b/c/d.py", "text: names that `add` would change"),
    ("the reporter's own words", "text", "Hello, I tried it on my GPU", "the reporter's own words: Hello, I tried it on my GPU"),
    ("another language", "text", "训练时报错", "another language: 训练时报错"),
    ("a label that is no cause", "label", "oom", "'oom' is not a cause"),
    ("a source that cannot be found", "source", "a forum", "the source is not owner/repo#number: a forum"),
    ("too much prose", "text", "\n".join(["it stops when the data is on the disk and does not go on"] * 9),
     "126 words of prose, at most 70: say it in fewer, in your own"),
    ("a localized message of a tool", "text", "OSError: [WinError 1455] 页面文件太小", None),
    ("a report as it should be", "text", REPORT["text"], None),
)


def check_reports():
    """(passed, failed)"""
    known = collect.causes()
    failed = 0
    for claim, field, value, said in FLAWED:
        found = collect.flaws({**REPORT, field: value}, known)
        if found if said is None else said not in found:
            failed += 1
            print("not ok - %s: %s" % (claim, "seen" if said else "allowed"), *found, sep="\n    ")
        if field in ("text", "env") and collect.neutral(collect.neutral(value)) != collect.neutral(value):
            failed += 1
            print("not ok - %s: neutral names stay as they are" % claim)
    return len(FLAWED) - failed, failed


def check_index(folder):
    """(passed, failed)"""
    for name, text in (("README.md", "[a page](listed.md)"), ("listed.md", "README.md links this one"), ("lost.md", "listed.md alone links this one")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text + "\n")
    found = list(check_docs.unlisted(folder))
    good = len(found) == 1 and "lost.md is not listed" in found[0]
    if not good:
        print("not ok - a page that the index of its folder does not list", *found, sep="\n    ")
    return good, not good


# what a document says, and the word of docs/develop/voice.md that is found in it
SAID = (("The wrong ones are mended since.", "mended"), ("Whoever reads it, waits.", "whoever"), ("a recommended amendment", None), ("It is fixed.", None))


def check_words():
    """(passed, failed)"""
    avoid, failed = check_docs.words_to_avoid(check_docs.read(os.path.join(ROOT, check_docs.VOICE))), 0
    for text, word in SAID:
        found = list(check_docs.bad_words(text, avoid))
        if len(found) != (word is not None) or (word and "'%s'" % word not in found[0]):
            failed += 1
            print("not ok - words to avoid in %r: %s" % (text, found))
    return len(SAID) - failed, failed


def link_tree(tree):
    """Links, not copies: quick. A planted file takes the place of its link."""
    for part in ("include", "src", "python", "kb", "tests/e2e", "tests/gpu/cases", "tests/gpu/faults", "tests/unit", "tests/text/own"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(tree, part), copy_function=os.link)


def found_with(tree, check, name, text):
    """What the check finds in the tree with this text at the end of the file."""
    path = os.path.join(tree, name)
    old = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = f.read()
        os.unlink(path)
    with open(path, "w", encoding="utf-8") as f:
        f.write((old or "") + text + "\n")
    found = list(check_source.CHECKS[check](tree))
    os.unlink(path)
    if old is not None:
        os.link(os.path.join(ROOT, name), path)
    return found


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        passed, failed = (sum(x) for x in zip(check_reports(), check_words(), check_index(folder)))
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as tree:
        link_tree(tree)
        for rows, wanted in ((PLANTED, True), (ALLOWED, False)):
            for claim, check, name, text in rows:
                found = found_with(tree, check, name, text)
                mine = [x for x in found if x.startswith(name + ":") or x == os.path.basename(name)[:-3]]
                good = (len(mine) == 1) == wanted and len(found) == len(mine)
                passed += good
                failed += not good
                if not good:
                    print("not ok - %s: %s" % (claim, "seen" if wanted else "allowed"), *found[:3], sep="\n    ")
    print("planted: %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
