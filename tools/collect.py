#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds labeled reports to tests/text/reports, and checks those that are there.

  tools/collect.py check                  every report: complete, neutral, in nobody else's words
  tools/collect.py add FILE --to NAME     one report, a JSON object without id: neutral names, an id, its half; `-` reads stdin
  tools/collect.py halves                 how many are in each half

A report is rebuilt, never copied. Messages and tracebacks in the fixed format of a tool are facts and stand as they are; whatever the
reporter wrote around them is said again in our own words, in a few of them. Names of people, machines and folders become neutral ones.
`add` does most of that by itself and refuses what is left. What each field means: tests/text/reports.py."""
import argparse
import hashlib
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "text"))
import reports  # noqa: E402

PROSE_WORDS_MAX = 70    # of one report
WHY_WORDS_MAX = 60

# --- names become neutral --------------------------------------------------------------------------------------------------------

SYSTEM = ("usr", "opt", "lib", "lib64", "bin", "sbin", "dev", "proc", "sys", "etc", "var", "tmp", "run", "pytorch", "env", "path", "nix")
ENVIRONMENT = re.compile(r"(\.?(mini|ana)conda\d*|\.?miniforge\d*|\.?mambaforge|\.conda|\.local|\.?venv|\.?env|\.cache|AppData|"
                         r"python_embed\w*|envs|site-packages|dist-packages|\.julia)$", re.I)
UNIX_PATH = re.compile(r"(?<![\w.:/\\~<-])(?P<root>/)(?P<rest>(?:[\w.+@=-]+/)+[\w.+@=-]*)")
HOME_PATH = re.compile(r"(?<![\w/])(?P<root>~/)(?P<rest>(?:[\w.+@-]+/)*[\w.+@-]+)")
WINDOWS_PATH = re.compile(r"\b(?P<root>[A-Za-z]:(?P<bar>\\\\|\\|/))(?P<rest>(?:[\w.+@ -]+?(?P=bar))+[\w.+@-]*)")
KEPT_PARTS = 4  # of a program's own path: the file, and what may name its package


def neutral_parts(parts, home):
    """The parts of a path behind its root: those of an environment stay, those of people and projects do not."""
    for i, part in enumerate(parts):
        if ENVIRONMENT.match(part) or (part.lower() == "lib" and i + 1 < len(parts) and parts[i + 1].startswith("python")):
            tail = parts[i:]
            for k in range(1, len(tail)):
                if tail[k - 1] == "envs":
                    tail[k] = "env"
            return home + tail
    if len(parts) <= 1:
        return home + parts
    return home + ["project"] + parts[max(1, len(parts) - KEPT_PARTS):]


def neutral_unix(m):
    parts = m["rest"].split("/")
    if parts[0] == "home" and len(parts) > 1:
        return "/" + "/".join(neutral_parts(parts[2:], ["home", "user"]))
    if parts[0] == "root":
        return "/" + "/".join(neutral_parts(parts[1:], ["home", "user"]))
    if parts[0] in SYSTEM or len(parts) < 3:
        return m[0]
    return "/" + "/".join(neutral_parts(parts[1:], ["home", "user"]))


def neutral_windows(m):
    bar = m["bar"]
    parts = m["rest"].split(bar)
    if parts[0].lower() in ("windows", "program files", "programdata"):
        return m[0]
    if parts[0].lower() == "users" and len(parts) > 1:
        parts = parts[2:]
    elif parts[0].lower() == "documents and settings":
        parts = parts[2:]
    return m["root"] + bar.join(neutral_parts(parts, ["Users", "user"]))


def neutral_home(m):
    return "~/" + "/".join(neutral_parts(m["rest"].split("/"), []))


PROMPT = re.compile(r"^(?P<env>\([\w.+ -]+\) )?[\w.-]+@[\w.-]+:(?P<where>[^$#\n]*)(?P<end>[$#])", re.M)
BRACKET_PROMPT = re.compile(r"^(?P<env>\([\w.+ -]+\) )?\[[\w.-]+@[\w.-]+ [^\]\n]*\](?P<end>[$#])", re.M)
MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b")
NCCL_HOST = re.compile(r"^(?P<host>[\w.-]+)(?=:\d+:\d+ \[\d+\] )", re.M)
SYSLOG_HOST = re.compile(r"^(?P<time>[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d )(?P<host>[\w.-]+)(?= [\w./-]+(\[\d+\])?:)", re.M)
UUID = re.compile(r"\b(GPU|MIG)-[0-9a-f]{4,8}(-[0-9a-fx]{4,12})*(?:\.{3})?(?=\W|$)")
ADDRESS = re.compile(r"(?<![\d.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\d.])(?=[:<|\s,)/'\"]|$)")
TOKENS = re.compile(r"\b(hf_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9]{16,}|AKIA[A-Z0-9]{8,}|xox[bap]-[\w-]+|"
                    r"eyJ[\w-]{20,}|glpat-[\w-]+|wandb_v1_\w+)")
PRIVATE = re.compile(r"(10|127|0|255|169|192|172|224)\.")
LINK = re.compile(r"https?://([\w.-]+)")
KNOWN_SITES = re.compile(r"(.*\.)?(pytorch\.org|nvidia\.com|github\.com|huggingface\.co|tensorflow\.org|python\.org|pypi\.org|openxla\.org|"
                         r"readthedocs\.(io|org)|anaconda\.(com|org)|microsoft\.com|docker\.(com|io)|llvm\.org|numpy\.org|jax\.dev|ray\.io|"
                         r"googleapis\.com|example\.(com|org)|localhost|127\.0\.0\.1|0\.0\.0\.0|githubusercontent\.com|nvcr\.io|"
                         r"pypa\.io|aliyun\.com|onnxruntime\.ai|lightning\.ai|vllm\.ai|aka\.ms|kernel\.org|ubuntu\.com|debian\.org|0\.0\.0\.0|rocm\.docs\.amd\.com|amd\.com)$")

# --- the reporter's own words ----------------------------------------------------------------------------------------------------

FOREIGN = re.compile(r"[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
FIXED = re.compile(r"Error|Exception|WinError|错误 \d|\[Errno")    # a tool's message in another language
GLOSSARY = (("显卡型号", "GPU"), ("显卡", "GPU"), ("驱动版本", "driver version"), ("版本", " version"), ("系统", "system"), ("环境", "environment"),
            ("内存", "memory"), ("显存", "GPU memory"), ("操作系统", "operating system"), ("：", ": "), ("，", ", "), ("。", "."), ("（", "("), ("）", ")"))
FIRST_PERSON = re.compile(r"(?<![\w'\"`./=-])(I|i(?= [a-z])|I'm|I've|my|we|our|me)(?![\w'\"`./=-])(?! \d)")
REPLIES = ((r"\b(how|where|what|which) (?:can|do|should|could) I\b", r"\1 to"), (r"\bI (?:am|was|have|had|would|will|can) ", ""), (r"\bI'(?:m|ve|d|ll) ", ""), (r"(?<![\w'\"])[Ii] (?=[a-z])", ""), (r"\b[Ww]e (?=[a-z])", ""),
           (r"\bmy own\b", "an own"), (r"\b[Mm]y\b", "the"), (r"\b[Oo]ur\b", "the"), (r"\bfor me\b", "here"), (r"\bme\b", "the reporter"))
PROSE_SIGNS = re.compile(r"\b(the|when|but|and|is|are|it|with|on|after|does|not|same|only|works?|to|if|then|also|even|always|because|so)\b")
MACHINE = re.compile(r"Error|Warning|error|WARN|INFO|ERROR|DEBUG|\d\d:\d\d:\d\d|NVRM|NCCL|File \"|https?://|[{}=;|]|\w\(|^\W*(\[|>>>|\$|%|#|=|\+|!)|"
                     r"^(Setting|Compile with|Duplicate GPU|The above|During handling|Defaulting|Allowing|Alternatively|CUDA |Please|Train on|terminate|NVIDIA |"
                     r"If |or newer|The NVIDIA|Make sure|PyTorch|Use |version from|ninja|ERROR|Running|Loading|[Tt]he detected|changes and|state without)|ignoring|"
                     r"^\s")


def is_prose(line):
    words = re.findall(r"[A-Za-z][a-z']+", line)
    return len(words) >= 5 and len(PROSE_SIGNS.findall(line)) >= 2 and not MACHINE.search(line)


def own_words(text):
    """Without first person, and without other languages, except in a tool's message."""
    lines = []
    for line in text.split("\n"):
        if FOREIGN.search(line) and not FIXED.search(line):
            for word, english in GLOSSARY:
                line = line.replace(word, english)
            line = line.rstrip()
            if FOREIGN.search(line):
                continue
        if FIRST_PERSON.search(line) and not MACHINE.search(line):
            for words, other in REPLIES:
                line = re.sub(words, other, line)
        lines.append(line)
    return "\n".join(lines)


def neutral(text):
    """Users, machines, folders and devices under other names. The same text again when it has none."""
    hosts = {}

    def host(m):
        name = m["host"]
        new = hosts.setdefault(name, name if re.match(r"(node|host|localhost|worker)\d*$", name) else "node%d" % (len(hosts) + 1))
        return (m.groupdict().get("time") or "") + new

    def address(m):
        return m[0] if PRIVATE.match(m[0]) or int(m[1]) < 20 or int(m[1]) > 223 else "203.0.113.%s" % m[4]

    text = PROMPT.sub(lambda m: (m["env"] and "(env) " or "") + "user@host:~" + m["end"], text)
    text = BRACKET_PROMPT.sub(lambda m: (m["env"] and "(env) " or "") + "[user@host ~]" + m["end"], text)
    text = NCCL_HOST.sub(host, SYSLOG_HOST.sub(host, text))
    text = UNIX_PATH.sub(neutral_unix, text)
    text = WINDOWS_PATH.sub(neutral_windows, text)
    text = HOME_PATH.sub(neutral_home, text)
    text = MAIL.sub("user@host", text)
    text = UUID.sub(r"\1-00000000-0000-0000-0000-000000000000", text)
    return ADDRESS.sub(address, text)


# --- what is wrong with a report ---------------------------------------------------------------------------------------------------


def causes():
    folder = os.path.join(ROOT, "kb", "causes")
    return {name[:-3] for name in os.listdir(folder) if name.endswith(".md")} | {"none", "unknown"}


def form_flaws(report, known):
    for field, kind in reports.FIELDS.items():
        if not isinstance(report.get(field), kind):
            yield "'%s' is missing, or not a %s" % (field, kind.__name__)
    for field in report:
        if field not in reports.FIELDS and (field, report[field]) != ("read", True):
            yield "'%s' is not a field" % field
    if not re.match(r"[\w.-]+/[\w.-]+#\d+$", str(report.get("source"))):
        yield "the source is not owner/repo#number: %s" % report.get("source")
    if report.get("told_by") not in reports.TELLERS:
        yield "told_by is none of %s" % ", ".join(reports.TELLERS)
    for label in [report.get("label")] + list(report.get("also", [])):
        if label not in known:
            yield "'%s' is not a cause" % label
    if not str(report.get("text", "")).strip():
        yield "it has no text"


def privacy_flaws(text):
    for pattern, what in ((r"/home/(?!user\b)[\w.-]+", "a home folder"), (r"[A-Za-z]:\\+Users\\+(?!user\b)[\w.-]+", "a home folder"),
                          (r"(?<![\w/])/root/", "a home folder"), (r"/Users/(?!user\b)[\w.-]+", "a home folder")):
        for m in re.finditer(pattern, text):
            yield "%s: %s" % (what, m[0])
    for m in MAIL.finditer(text):
        yield "an address: %s" % m[0]
    for m in TOKENS.finditer(text):
        yield "a secret: %s…" % m[0][:6]
    for m in LINK.finditer(text):
        if not KNOWN_SITES.match(m[1].rstrip(".")):
            yield "a host: %s" % m[1]
    if neutral(text) != text:
        yield "names that `add` would change"


def prose_flaws(text):
    words = sum(len(line.split()) for line in text.split("\n") if is_prose(line))
    if words > PROSE_WORDS_MAX:
        yield "%d words of prose, at most %d: say it in fewer, in your own" % (words, PROSE_WORDS_MAX)
    for line in text.split("\n"):
        if FIRST_PERSON.search(line) and not MACHINE.search(line):
            yield "the reporter's own words: %s" % line[:70]
        if FOREIGN.search(line) and not FIXED.search(line):
            yield "another language: %s" % line[:40]


def flaws(report, known):
    found = list(form_flaws(report, known))
    for field in ("text", "env", "why"):
        found += ["%s: %s" % (field, flaw) for flaw in privacy_flaws(report.get(field, ""))]
    found += prose_flaws(report.get("text", "") + "\n" + report.get("env", ""))
    if len(report.get("why", "").split()) > WHY_WORDS_MAX:
        found.append("why: more than %d words" % WHY_WORDS_MAX)
    return found


# --- commands ------------------------------------------------------------------------------------------------------------------------


def check():
    known, seen, wrong, n = causes(), {}, 0, 0
    for path in reports.files():
        for number, report in enumerate(reports.read(path), 1):
            n += 1
            found = flaws(report, known)
            for what in (report.get("id"), report.get("text")):
                if what in seen:
                    found.append("is there twice: %s" % seen[what])
                seen[what] = report.get("id")
            # what a kept report says is not for reading
            shown = found if reports.half(report) == "tuned" else [re.sub(r": .*", "", flaw) for flaw in found]
            for flaw in shown:
                print("%s:%d: %s: %s" % (os.path.relpath(path, ROOT), number, report.get("id"), flaw))
            wrong += bool(found)
    if wrong:
        print("reports: %d of %d have flaws" % (wrong, n))
    return wrong == 0


def new_id(report):
    return "r-" + hashlib.sha256((report["source"] + "\n" + report["text"]).encode()).hexdigest()[:8]


def ready(report):
    """As it is stored: every field in its order, all names neutral."""
    report = {"also": [], "env": "", "why": "", **report}
    for field in ("text", "env", "why"):
        report[field] = neutral(own_words(report[field].strip("\n")))
    report.setdefault("id", new_id(report))
    return {field: report[field] for field in list(reports.FIELDS) + [f for f in report if f not in reports.FIELDS] if field in report}


def write(path, list_):
    with open(path, "w", encoding="utf-8") as f:
        for report in list_:
            f.write(json.dumps(report, ensure_ascii=False) + "\n")


def add(source, name):
    path = os.path.join(reports.FOLDER, name + ".jsonl")
    with sys.stdin if source == "-" else open(source, encoding="utf-8") as f:
        report = json.load(f)
    if "source" not in report or "text" not in report:
        raise SystemExit("a report needs a source and a text")
    report = ready(report)
    found = flaws(report, causes())
    if any(report["id"] == other["id"] for other in reports.read_all()):
        found.append("it is there already")
    for flaw in found:
        print("%s: %s" % (source, flaw))
    if found:
        return False
    write(path, (reports.read(path) if os.path.exists(path) else []) + [report])
    print("%s: added to %s, %s half" % (report["id"], os.path.relpath(path, ROOT), reports.half(report)))
    return True


def halves():
    list_ = reports.read_all()
    for half in reports.HALVES:
        print("%s: %d" % (half, sum(reports.half(report) == half for report in list_)))
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = p.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    commands.add_parser("halves")
    one = commands.add_parser("add")
    one.add_argument("file")
    one.add_argument("--to", required=True, metavar="NAME", help="tests/text/reports/NAME.jsonl")
    o = p.parse_args()
    sys.exit(0 if (add(o.file, o.to) if o.command == "add" else check() if o.command == "check" else halves()) else 1)


if __name__ == "__main__":
    main()
