# SPDX-License-Identifier: Apache-2.0
"""The clothes of a text: how loggers, collectors, terminals, notebooks, web pages and archives pass it on. Each is a function from a
text to the bytes of a file; `KINDS` has them all, with the share of texts that must get the same answer."""
import gzip
import html
import json
import lzma
import re
import shutil
import subprocess
import textwrap

EXCEPTION = re.compile(r"[\w.]*(Error|Exception)$")


def each_line(form):
    """`form(i)` is what the i-th line begins with."""
    return lambda text: "\n".join(form(i) + line for i, line in enumerate(text.split("\n")))


def windows(text):
    return "\r\n".join("\033[31m%s\033[0m" % x if x else x for x in text.replace("\r", "").split("\n"))


SHARDS = ["read shard %06d of the data set from the cache" % i for i in range(6000)]
# what is always read of the beginning is measured in bytes, of the end in lines; reading takes its time by line
BEFORE = "".join("; ".join(SHARDS[i:i + 20]) + "\n" for i in range(0, len(SHARDS), 20))
AFTER = "".join(line + "\n" for line in SHARDS[:1000])


def long(text):
    """The text is beyond the beginning and before the end, both of which are always read (src/read/text/stream.c)."""
    return BEFORE + text + "\n" + AFTER


def fold(width):
    def wrap(text):
        return "\n".join(line[i:i + width] for line in text.split("\n") for i in range(0, max(len(line), 1), width))
    return wrap


def fold_words(width):
    def wrap(text):
        return "\n".join("\n".join(textwrap.wrap(line, width, drop_whitespace=True, break_long_words=True, break_on_hyphens=False)
                                   if len(line) > width else [line]) for line in text.split("\n"))
    return wrap


def html_page(text):
    lines = []
    for line in text.split("\n"):
        word, colon, rest = line.partition(":")
        if colon and EXCEPTION.match(word):
            lines.append('<span class="ansi-red-fg">%s</span>:%s' % (word, html.escape(rest)))
        else:
            lines.append(html.escape(line))
    return "<html><body>\n<div class=\"output\"><pre>%s</pre></div>\n</body></html>\n" % "\n".join(lines)


def html_lines(text):
    return "<p>" + "<br/>\n".join('<span style="color:#a00">%s</span>' % html.escape(x).replace(" ", "&nbsp;") for x in text.split("\n")) + "</p>"


def html_rows(text):
    return "<table>" + "".join('<tr><td class="n">%d</td><td class="code"><span>%s</span></td></tr>\n' % (i + 1, html.escape(x))
                               for i, x in enumerate(text.split("\n"))) + "</table>"


def notebook(outputs, **how):
    cell = {"cell_type": "code", "execution_count": 4, "metadata": {}, "source": ["main()"], "outputs": outputs}
    return json.dumps({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# Training"]}, cell],
                       "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}, **how)


def notebook_stream(text):
    return notebook([{"name": "stderr", "output_type": "stream", "text": [x + "\n" for x in text.split("\n")]}], indent=1)


def notebook_error(text):
    return notebook([{"ename": "RuntimeError", "evalue": "", "output_type": "error",
                      "traceback": ["\033[0;31m%s\033[0m" % text.replace("\r", "")]}], indent=1)


def notebook_dense(text):
    return notebook([{"name": "stderr", "output_type": "stream", "text": [x + "\n" for x in text.split("\n")]}])


def json_whole(text):
    return json.dumps({"ts": "2025-03-04T11:12:13Z", "level": "error", "logger": "train", "message": text}) + "\n"


def json_raised(text):
    return json.dumps({"asctime": "2025-03-04 11:12:13,123", "levelname": "ERROR", "message": "training failed", "exc_info": text},
                      separators=(",", ":")) + "\n"


def json_docker(text):
    return "".join(json.dumps({"log": x + "\n", "stream": "stderr", "time": "2025-03-04T11:12:13.%09dZ" % i}) + "\n"
                   for i, x in enumerate(text.split("\n")))


def one_line(text):
    return re.sub(r"\s*\n\s*", " ", text.strip()) + "\n"


def one_line_of_syslog(text):
    return "Mar  4 11:12:13 node7 train[4711]: " + text.strip().replace("\n", "#012") + "\n"


def zstandard(text):
    return subprocess.run(["zstd", "-q", "-c"], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def put_on(dress, text, failed):
    """What did not fail is not logged as an error: a line that calls itself one, and speaks of a GPU, is a failure."""
    done = dress(text)
    if failed or "ERROR" not in str(dress("x")) or not isinstance(done, str):
        return done
    return "\n".join(line.replace("ERROR", "INFO", 1) for line in done.split("\n"))


MOST = 0.97
KINDS = {
    "ranks": (each_line(lambda i: "[rank0]: "), 0.99),
    "times": (each_line(lambda i: "2025-03-04 11:12:13,%03d " % (i % 1000)), 0.99),     # a sentence over two lines, or a debugger's, may be lost
    "windows": (windows, 1),
    "long": (long, 0.99),   # a sentence without an exception's name or a frame is looked for near both ends only
    "logging": (each_line(lambda i: "2025-03-04 11:12:13,%03d - train.main - ERROR - " % (i % 1000)), MOST),
    "logging, short": (each_line(lambda i: "ERROR:train:"), MOST),
    "loguru": (each_line(lambda i: "2025-03-04 11:12:13.%03d | ERROR    | __main__:run:%d - " % (i % 1000, 40 + i % 90)), MOST),
    "absl": (each_line(lambda i: "E0304 11:12:13.%06d 140213%06d train.py:%d] " % (i, i % 7, 12 + i % 95)), MOST),
    "kubectl": (each_line(lambda i: "[pod/train-worker-0/main] "), MOST),
    "CRI": (each_line(lambda i: "2025-03-04T11:12:13.%09dZ stderr F " % i), MOST),
    "compose": (each_line(lambda i: "trainer  | "), MOST),
    "compose, numbered": (each_line(lambda i: "gpu-trainer-1   | "), MOST),
    "GitHub": (each_line(lambda i: "2025-03-04T11:12:13.%07dZ " % i), MOST),
    "GitLab": (each_line(lambda i: "2025-03-04T11:12:13.%06dZ 01E " % i), MOST),
    "srun": (each_line(lambda i: "0: "), MOST),
    "Ray": (each_line(lambda i: "(RayTrainWorker pid=4711, ip=10.0.0.3) "), MOST),
    "vLLM": (each_line(lambda i: "(EngineCore_0 pid=812) ERROR 03-04 11:12:%02d [core.py:%d] " % (i % 60, 500 + i)), MOST),
    "Java": (each_line(lambda i: "25/03/04 11:12:13 ERROR Executor task-%d: " % (i % 3)), MOST),
    "journal": (each_line(lambda i: "Mar 04 11:12:%02d node7 train[4711]: " % (i % 60)), MOST),
    "unknown": (each_line(lambda i: "<%d> node7/gpu1 ~ " % (i + 1)), MOST),
    "wrapped at 80": (fold(80), MOST),
    "wrapped at 100": (fold(100), MOST),
    "wrapped at 132": (fold(132), MOST),
    "words wrapped at 80": (fold_words(80), MOST),
    "HTML page": (html_page, MOST),
    "HTML lines": (html_lines, MOST),
    "HTML rows": (html_rows, MOST),
    "notebook stream": (notebook_stream, MOST),
    "notebook error": (notebook_error, MOST),
    "notebook, dense": (notebook_dense, MOST),
    "JSON": (json_whole, MOST),
    "JSON exc_info": (json_raised, MOST),
    "JSON of Docker": (json_docker, MOST),
    "gzip": (lambda text: gzip.compress(text.encode(), mtime=0), 1),
    "xz": (lambda text: lzma.compress(text.encode()), 1),
    "syslog, one line": (one_line_of_syslog, 0.8),
    "one line": (one_line, 0.8),
}
if shutil.which("zstd"):
    KINDS["zstd"] = (zstandard, 1)
