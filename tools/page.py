#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the report page together: page.py FOLDER PAGE [--charts auto|yes|no].

The modules of web/src become one script, which with the style sheet becomes one HTML file with two marks that `cuwhy report` puts
data into. The charts are drawn by uPlot, two files that are fetched once into FOLDER by pip or npm, whichever is there, and
accepted only with the checksums below. Without them the page has no charts: `auto` says so in one line, `yes` fails. The same
input gives the same bytes.
"""
import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(ROOT, "web", "src")
MAIN = "main.js"

# uPlot 1.6.18, as its author published it; a package on PyPI carries the same two files
CHARTS = {
    "uPlot.iife.min.js": "ad9b6e4e40b8fa83827ec120644a0d76ffc01bf3b771f2f95354882605e32c53",
    "uPlot.min.css": "37d952f00df006ceab033267e05f050cedd8d6906467cc86525dee795dcfa6a9",
}
PIP_PACKAGE = "Flask-AdminLTE3==1.0.9"
NPM_PACKAGE = "uplot@1.6.18"
SECONDS = 60    # of one try; who has no network should not wait longer

IMPORT = re.compile(r'^import (?:\{ ([\w, ]+) \}|(\w+)) from "(?:\./(\w+)\.js|(\w+))";$')
QUOTED = re.compile(r"""\[\^[^\]]*\]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
EXPORT = re.compile(r"^export (?=(?:const|function|async function) (\w+))")


# --- uPlot -----------------------------------------------------------------------------------------------------

def right(data, name):
    return hashlib.sha256(data).hexdigest() == CHARTS[name]


def have_charts(folder):
    for name in CHARTS:
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or not right(read(path, "rb"), name):
            return False
    return True


def pip_command():
    """pip as a module, or as the wheel that Debian keeps for new environments."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return [sys.executable, "-m", "pip"]
    wheels = sorted(glob.glob("/usr/share/python-wheels/pip-*.whl"))
    return [sys.executable, os.path.join(wheels[-1], "pip")] if wheels else None


def clients():
    """Registries' clients, as (name, command that leaves an archive in the current folder)."""
    pip = pip_command()
    if pip:
        yield "pip", pip + ["download", "--quiet", "--disable-pip-version-check",
                            "--retries", "1", "--timeout", "10", "--no-deps", "--only-binary", ":all:", "-d", ".", PIP_PACKAGE]
    npm = shutil.which("npm")
    if npm:
        yield "npm", [npm, "pack", "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=20000", NPM_PACKAGE]


def members(path):
    """Yields (base name, bytes) of the files that are wanted from an archive."""
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if os.path.basename(name) in CHARTS:
                    yield os.path.basename(name), archive.read(name)
    else:
        with tarfile.open(path) as archive:
            for entry in archive:
                if entry.isfile() and os.path.basename(entry.name) in CHARTS:
                    yield os.path.basename(entry.name), archive.extractfile(entry).read()


def fetch_charts(folder):
    """Returns why they cannot be had, or None."""
    why = "neither pip nor npm is installed"
    for client, command in clients():
        with tempfile.TemporaryDirectory() as scratch:
            try:
                done = subprocess.run(command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, timeout=SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                done = None
            if done is None or done.returncode:
                why = "%s cannot download it" % client
                continue
            found = {name: data for path in glob.glob(os.path.join(scratch, "*")) for name, data in members(path) if right(data, name)}
        if set(found) != set(CHARTS):
            why = "what %s downloaded has another checksum" % client
            continue
        os.makedirs(folder, exist_ok=True)
        for name, data in found.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        return None
    return why


# --- the script and the style ------------------------------------------------------------------------------------

def read(path, mode="r"):
    with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as f:
        return f.read()


def module(name, seen, out):
    """Appends the modules that this one needs, then this one, as `const name = (() => { …; return { what it exports }; })();`."""
    if name in seen:
        if seen[name] is None:
            raise SystemExit("page.py: web/src/%s.js imports itself in the end" % name)
        return
    seen[name] = None
    head, body, exports, ticks = [], [], [], 0
    for number, line in enumerate(read(os.path.join(SOURCES, name + ".js")).split("\n"), 1):
        found = IMPORT.match(line)
        if found:
            names, whole, ours, theirs = found.groups()
            if ours:
                module(ours, seen, out)
                head.append("const { %s } = %s_js;" % (names, ours))
            elif theirs != "uplot" or whole != "uPlot":
                raise SystemExit("page.py: web/src/%s.js:%d: there is no package '%s'" % (name, number, theirs))
            continue
        if line.startswith("import "):
            raise SystemExit("page.py: web/src/%s.js:%d: not an import that this program knows" % (name, number))
        found = EXPORT.match(line)
        if found:
            exports.append(found.group(1))
            line = line[found.end():]
        elif line.startswith("export "):
            raise SystemExit("page.py: web/src/%s.js:%d: not an export that this program knows" % (name, number))
        # layout and comments are for people; the lines of a text between backticks stay as they are
        if ticks % 2 == 0:
            line = line.strip()
            if not line or line.startswith("//"):
                continue
        ticks += QUOTED.sub("", line).count("`")
        body.append(line)
    out.append("\n".join(["const %s_js = (() => {" % name] + head + body + ["return { %s };" % ", ".join(exports), "})();"]))
    seen[name] = True


def script_of(charts):
    out = []
    module(MAIN[:-len(".js")], {}, out)
    return "\n".join(["(() => {", '"use strict";', charts.strip() if charts else "const uPlot = null;"] + out + ["})();"])


def style_of(charts):
    text = re.sub(r"/\*.*?\*/", "", read(os.path.join(SOURCES, "style.css")), flags=re.S)
    lines = [line.strip() for line in ((charts or "") + "\n" + text).split("\n")]
    return "\n".join(line for line in lines if line)


def checksum(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode() + "'"


def page_of(folder, with_charts):
    script = script_of(read(os.path.join(folder, "uPlot.iife.min.js")) if with_charts else None)
    style = style_of(read(os.path.join(folder, "uPlot.min.css")) if with_charts else None)
    if re.search(r"</script|<!--", script, re.I) or re.search(r"</style", style, re.I):
        raise SystemExit("page.py: the script or the style would end its own element")
    # Nothing is loaded, nothing but this one script runs, and nothing is ever parsed as markup.
    policy = "; ".join(["default-src 'none'", "script-src " + checksum(script), "style-src " + checksum(style), "base-uri 'none'",
                        "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"])
    license_text = "No code of others is in this page."
    if with_charts:
        license_text = read(os.path.join(ROOT, "web", "uplot.license")).strip().replace("--", "- -")
    parts = {"policy": policy, "style": style, "script": script, "license": license_text}
    return re.sub(r"%(\w+)%", lambda found: parts.get(found.group(1), found.group(0)), read(os.path.join(SOURCES, "page.html")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("page")
    parser.add_argument("--charts", choices=("auto", "yes", "no"), default="auto")
    given = parser.parse_args()
    why = None
    if given.charts != "no" and not have_charts(given.folder):
        why = fetch_charts(given.folder)
    if why and given.charts == "yes":
        sys.exit("cuwhy: the report page has no charts: %s" % why)
    page = page_of(given.folder, given.charts != "no" and not why)
    with open(given.page + ".new", "w", encoding="utf-8") as f:
        f.write(page)
    os.replace(given.page + ".new", given.page)
    if why:
        print("cuwhy: the report page is built without charts: uPlot is missing, and %s ('make charts' tries again)" % why)


if __name__ == "__main__":
    main()
