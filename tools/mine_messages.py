#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages of open packages that may have to do with a GPU, as candidates for kb/messages.def. Run by hand; people review what it writes.

    tools/mine_messages.py [--cache FOLDER] [NAME | NAME=PATH] ...    no names: those of tools/mined_packages.txt

NAME is downloaded from the package index that pip uses and kept in the cache (its sdist, or the smallest wheel if there is none);
PATH is a folder, an sdist or a wheel that is here already. One line for each message, tab-separated: how it is said (raise, assert, warn,
log), the exception's class, package, version, file:line, template. In a template, {n}, {bytes}, {shape}, … stand for what the program
fills in; which one is a guess from the expression.
"""
import argparse
import ast
import html
import os
import re
import sys
import tarfile
import urllib.parse
import urllib.request
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(ROOT, "tools", "mined_packages.txt")

# ---- what is kept --------------------------------------------------------------------------------------

ABOUT = re.compile(
    r"cuda|gpu|nvidia|nccl|\bdevice|memory|\bdriver|kernel|compile|shared mem|nvcc|nvrtc|ptx|triton|cudnn|cublas|cutlass|capability|"
    r"\bsm_?\d|\bOOM\b|tensor core|fp8|bf16|bfloat16|accelerator|hopper|ampere|blackwell|rendezvous|world.size|ranks?\b|process group|\bHIP\b|"
    r"rocm|\bcache blocks|KV cache|same dtype|shapes? (mis|cannot|do)|out of (range|bounds)|undefined symbol|shared object", re.I)
SKIPPED = re.compile(r"(^|/)(tests?|testing|docs?|examples?|benchmarks?|third_party|third-party|3rdparty|vendor|node_modules)(/|$)|(^|/)(test_[^/]*|[^/]*_test)\.")

# ---- holes ---------------------------------------------------------------------------------------------

HOLES = (
    ("n", r"^len\("),
    ("bytes", r"bytes|memory|\bmem\b|gib|_gb\b|\bsize_in"),
    ("dtype", r"dtype|scalar_?type|\.type\(\)"),
    ("shape", r"shape|\.sizes?\b|dims?\b|strides"),
    ("device", r"device"),
    ("version", r"version|capability|\barch\b"),
    ("path", r"path|file|\bdir|folder"),
    ("index", r"index|idx|rank"),
    ("n", r"num|count|\bn_|\bi\b|size|length|max|min|degree|width"),
    ("name", r"name|class|cls|type|backend|\bfunc|method|\bkey|mode"),
)


def hole(expression):
    """The type of what an expression prints, as far as its words say."""
    for kind, words in HOLES:
        if re.search(words, expression, re.I):
            return "{%s}" % kind
    return "{text}"


def tidy(template):
    """One line; holes that touch each other are one."""
    template = re.sub(r"\s+", " ", template).strip()
    while re.search(r"\{\w+\}\{\w+\}", template):
        template = re.sub(r"\{\w+\}\{\w+\}", "{text}", template)
    return template


# ---- Python --------------------------------------------------------------------------------------------

PERCENT = re.compile(r"%(\(\w+\))?[-+ #0]*[\d*]*(\.[\d*]+)?[diouxXeEfFgGcrsa]")
LOGGED = {"error", "warning", "warn", "critical", "exception", "fatal", "warning_once", "error_once"}
WARNED = {"warn", "rank_zero_warn", "warn_once", "_warn_once"}


def spell(node):
    return ast.unparse(node) if node is not None else ""


def percent(text, values):
    """A format of printf, with the types of its values."""
    values = list(values)

    def one(_):
        return hole(spell(values.pop(0)) if values else "")

    return PERCENT.sub(one, text).replace("%%", "%")


def braces(text, call):
    """A format of str.format."""
    named = {k.arg: spell(k.value) for k in call.keywords}
    order = [spell(a) for a in call.args]

    def one(match):
        name = match.group(1)
        if name == "" and order:
            return hole(order.pop(0))
        if name.isdigit() and int(name) < len(call.args):
            return hole(spell(call.args[int(name)]))
        return hole(named.get(name, name))

    return re.sub(r"\{([^{}:!.\[]*)[^{}]*\}", one, text.replace("{{", "\1").replace("}}", "\2")).replace("\1", "{{").replace("\2", "}}")


def template_of(node, names):
    """The template of an expression that makes a message; None when it has no words of its own."""
    if isinstance(node, ast.Constant):
        return node.value.replace("{", "{{").replace("}", "}}") if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(hole(spell(v.value)) if isinstance(v, ast.FormattedValue) else template_of(v, names) or "" for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template_of(node.left, names), template_of(node.right, names)
        if left is None and right is None:
            return None
        return (hole(spell(node.left)) if left is None else left) + (hole(spell(node.right)) if right is None else right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        text = template_of(node.left, names)
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return None if text is None else percent(text, values)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            value = node.func.value
            text = value.value if isinstance(value, ast.Constant) else None
            if text is None and isinstance(value, ast.Name) and isinstance(names.get(value.id), ast.Constant):
                text = names[value.id].value
            return braces(text, node) if isinstance(text, str) else None
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "lstrip", "rstrip", "replace"):
            return template_of(node.func.value, names)
        return template_of(node.args[0], names) if node.args else None
    if isinstance(node, ast.Name) and node.id in names:
        known = dict(names)
        return template_of(known.pop(node.id), known)
    if isinstance(node, ast.IfExp):
        return template_of(node.body, names)
    return None


class PythonMessages(ast.NodeVisitor):
    def __init__(self, say):
        self.say, self.names = say, {}

    def visit_FunctionDef(self, node):
        outer, self.names = self.names, dict(self.names)
        self.generic_visit(node)
        self.names = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node):
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.names[node.targets[0].id] = node.value
        self.generic_visit(node)

    def tell(self, kind, name, node, message):
        text = template_of(message, self.names) if message is not None else None
        if text:
            self.say(kind, name, node.lineno, text)

    def visit_Raise(self, node):
        if isinstance(node.exc, ast.Call):
            self.tell("raise", spell(node.exc.func), node, node.exc.args[0] if node.exc.args else None)
        self.generic_visit(node)

    def visit_Assert(self, node):
        self.tell("assert", "AssertionError", node, node.msg)
        self.generic_visit(node)

    def visit_Call(self, node):
        name = spell(node.func)
        last = name.rsplit(".", 1)[-1]
        if node.args and last in LOGGED | WARNED and name.startswith(("warnings.", "rank_zero_warn", "warn_once", "_warn_once")):
            self.tell("warn", spell(node.args[1]) if len(node.args) > 1 else "UserWarning", node, node.args[0])
        elif node.args and last in LOGGED and "." in name:
            text = template_of(node.args[0], self.names)
            if text:
                self.say("log", last, node.lineno, percent(text, node.args[1:]) if len(node.args) > 1 else text)
        self.generic_visit(node)


def mine_python(text, say):
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    PythonMessages(say).visit(tree)


# ---- C, C++, CUDA, Cython ------------------------------------------------------------------------------

# how it is said, the class that Python sees, and how many arguments come before the message
MACROS = {
    "TORCH_CHECK": ("raise", "RuntimeError", 1), "TORCH_CHECK_INDEX": ("raise", "IndexError", 1),
    "TORCH_CHECK_VALUE": ("raise", "ValueError", 1), "TORCH_CHECK_TYPE": ("raise", "TypeError", 1),
    "TORCH_CHECK_LINALG": ("raise", "LinAlgError", 1), "TORCH_CHECK_NOT_IMPLEMENTED": ("raise", "NotImplementedError", 1),
    "TORCH_CHECK_WITH": ("raise", "", 2), "TORCH_CHECK_WITH_MSG": ("raise", "", 2), "TORCH_INTERNAL_ASSERT": ("assert", "RuntimeError", 1),
    "TORCH_WARN": ("warn", "UserWarning", 0), "TORCH_WARN_ONCE": ("warn", "UserWarning", 0), "AT_ERROR": ("raise", "RuntimeError", 0),
    "AT_ASSERTM": ("raise", "RuntimeError", 1), "AT_CHECK": ("raise", "RuntimeError", 1), "C10_THROW_ERROR": ("raise", "", 1),
    "CUDA_CHECK_MSG": ("raise", "RuntimeError", 1), "XFORMERS_CHECK": ("raise", "RuntimeError", 1), "FLASHINFER_CHECK": ("raise", "RuntimeError", 1),
    "STD_TORCH_CHECK": ("raise", "RuntimeError", 1), "WARN": ("log", "NCCL WARN", 0), "runtime_error": ("raise", "RuntimeError", 0),
    "invalid_argument": ("raise", "ValueError", 0), "out_of_range": ("raise", "IndexError", 0), "PyErr_Format": ("raise", "", 1),
    "PyErr_SetString": ("raise", "", 1), "ResourceExhausted": ("raise", "ResourceExhaustedError", 0), "ORT_THROW": ("raise", "RuntimeException", 0),
    "ORT_ENFORCE": ("raise", "RuntimeException", 1), "GGML_LOG_ERROR": ("log", "", 0),
}
CALL = re.compile(r"\b(%s)\s*\(|\bLOG\((ERROR|WARNING|FATAL)\)|\braise\s+([\w.]+)\(" % "|".join(MACROS))
STRING = re.compile(r'(u8|[uULRbf])?"((?:[^"\\\n]|\\.)*)"')


def unescape(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": " "}.get(m.group(1), m.group(1)), text)


def without_comments(text):
    """Comments become spaces: lines keep their numbers."""
    def blank(match):
        return match.group(0) if match.group(0)[0] in "\"'" else re.sub(r"[^\n]", " ", match.group(0))

    return re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)


def arguments(text, at):
    """The arguments of the call whose '(' is before `at`, without the strings' inner commas."""
    depth, out, start, i = 1, [], at, at
    while i < len(text) and depth:
        string = STRING.match(text, i) if text[i] in '"uULRbf' else None
        if string:
            i = string.end()
            continue
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
        elif text[i] == "," and depth == 1:
            out.append(text[start:i])
            start = i + 1
        i += 1
    out.append(text[start:i - 1])
    return out


def pieces(code):
    """Words and holes of "text" + x, or of "text" << x."""
    out, at = "", 0
    for string in STRING.finditer(code):
        between = code[at:string.start()].strip(" \n\t+<>()&;")
        text = unescape(string.group(2))
        if string.group(1) == "f":
            text = re.sub(r"\{([^{}]*)\}", lambda m: hole(m.group(1)), text)
        else:
            text = text.replace("{", "{{").replace("}", "}}")
        out += (hole(between) if re.search(r"\w", between) else "") + text
        at = string.end()
    rest = code[at:].strip(" \n\t+<>()&;")
    return out + (hole(rest) if re.search(r"\w", rest) and at else "") if at else None


def c_template(args):
    out = ""
    for number, a in enumerate(args):
        text = pieces(a)
        if text is not None and number == 0 and PERCENT.search(text):
            return percent(text, [ast.Constant(value=x.strip()) for x in args[1:]])
        out += hole(a) if text is None else text
    return out


def mine_c(text, say):
    text = without_comments(text)
    for call in CALL.finditer(text):
        line = text.count("\n", 0, call.start()) + 1
        if call.group(2):
            end = text.find(";", call.end())
            message = pieces(text[call.end():end if end > 0 else len(text)])
            kind, name = "log", call.group(2).lower()
        else:
            kind, name, skip = MACROS[call.group(1)] if call.group(1) else ("raise", call.group(3), 0)
            args = arguments(text, call.end())
            if skip and not name:
                name = args[0].strip().rsplit(":", 1)[-1].replace("PyExc_", "")
            message = c_template(args[skip:]) if len(args) > skip else None
        if message and re.sub(r"\{\w+\}", "", message).strip():
            say(kind, name, line, message)


READERS = {".py": mine_python}
READERS.update({end: mine_c for end in (".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".pyx", ".pxi")})

# ---- packages ------------------------------------------------------------------------------------------


def index_page(name):
    from pip._internal.models.index import PyPI
    from pip._internal.configuration import Configuration
    settings = Configuration(isolated=False)
    settings.load()
    index = dict(settings.items()).get("global.index-url") or PyPI.simple_url
    url = "%s/%s/" % (index.rstrip("/"), re.sub(r"[-_.]+", "-", name).lower())
    with urllib.request.urlopen(url, timeout=60) as page:
        return url, page.read().decode()


def version_of(name, file):
    match = re.match(r"%s-(\d[\w.+!]*?)(\.tar\.gz$|\.zip$|-.*\.whl$)" % "[-_.]+".join(re.split(r"[-_.]+", name)), file, re.I)
    return match.group(1) if match else ""


def order_of(version):
    return [int(x) for x in re.findall(r"\d+", re.split(r"[a-z+]", version)[0])]


def download(name, cache):
    """The newest sdist, or wheel if there is none; without trial versions."""
    for file in sorted(os.listdir(cache)):
        if version_of(name, file):
            return os.path.join(cache, file)
    base, page = index_page(name)
    links = [(html.unescape(url), file) for url, file in re.findall(r'<a[^>]*href="([^"]+)"[^>]*>\s*([^<]+?)\s*</a>', page)]
    usable = [(url, file) for url, file in links
              if version_of(name, file) and not re.search(r"\d(a|b|rc|dev)\d", file) and
              (file.endswith((".tar.gz", ".zip")) or re.search(r"-(any|manylinux[^-]*x86_64)\.whl$", file))]
    if not usable:
        raise OSError("no file of %s that can be read" % name)
    newest = max((order_of(version_of(name, file)) for _, file in usable))
    usable = [x for x in usable if order_of(version_of(name, x[1])) == newest]
    url, file = min(usable, key=lambda x: (not x[1].endswith((".tar.gz", ".zip")), x[1]))
    to = os.path.join(cache, file)
    urllib.request.urlretrieve(urllib.parse.urljoin(base, url), to + ".part")
    os.rename(to + ".part", to)
    return to


def files_of(path):
    """Name and text of every source file in a folder or an archive."""
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            for name in sorted(names):
                if os.path.splitext(name)[1] in READERS:
                    full = os.path.join(folder, name)
                    with open(full, encoding="utf-8", errors="replace") as f:
                        yield os.path.relpath(full, path), f.read()
    elif path.endswith((".whl", ".zip")):
        with zipfile.ZipFile(path) as z:
            for name in z.namelist():
                if os.path.splitext(name)[1] in READERS:
                    yield name, z.read(name).decode("utf-8", "replace")
    else:
        with tarfile.open(path) as t:
            for member in t:
                if member.isfile() and os.path.splitext(member.name)[1] in READERS:
                    yield member.name.split("/", 1)[-1], t.extractfile(member).read().decode("utf-8", "replace")


def mine(package, version, path, write):
    """Every message once, at its first place."""
    seen = set()
    for name, text in files_of(path):
        if SKIPPED.search(name):
            continue

        def say(kind, cls, line, message, name=name):
            message = tidy(message)
            if (kind, message) in seen or not ABOUT.search(message + " " + cls):
                return
            seen.add((kind, message))
            write("\t".join((kind, cls, package, version, "%s:%d" % (name, line), message)))

        READERS[os.path.splitext(name)[1]](text, say)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", default=os.path.expanduser("~/.cache/cuwhy-messages"))
    parser.add_argument("package", nargs="*")
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    packages = options.package
    if not packages:
        with open(LIST, encoding="utf-8") as f:
            packages = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
    failed = 0
    for package in packages:
        name, _, path = package.partition("=")
        try:
            path = path or download(name, options.cache)
            mine(name, version_of(name, os.path.basename(path)), path, print)
        except OSError as problem:
            print("mine_messages: %s: %s" % (name, problem), file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
