# SPDX-License-Identifier: Apache-2.0
"""When are two outcomes the same, and whose fault is it if they are not?"""
import re

# what differs between any two runs of a program, and what stands for it
DIFFERS_ANYWAY = [(re.compile(pattern), word) for pattern, word in (
    (r"0x[0-9a-fA-F]+", "ADDRESS"),
    (r"/tmp/[^\s'\",:)\]]*", "PATH"),
    (r"(?i)\b(pid|process|thread|rank)([ =:]+)\d+", r"\1\2N"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*", "DATE"),
    (r"(?i)(?<![\w.])\d+(\.\d+)?(e[-+]?\d+)?\s?(ns|us|µs|ms|s|sec|seconds?|it/s|tokens?/s|tflops|gb/s)\b", "TIME"),
    (r"(?i)\b(localhost|127\.0\.0\.1|\[::1?\]):\d+", r"\1:PORT"),
    (r"(?i)(?<![\w.])\d+(\.\d+)? ?(KiB|MiB|GiB)", "SIZE"),     # in OOM messages: what the neighbors hold
)]
ENDED = ("crashed", "timed out")


def normal(text, folders=(), more=()):
    """TEXT without what differs anyway; FOLDERS are paths of this run, MORE are patterns of this program alone."""
    for folder in folders:
        text = re.sub(re.escape(folder) + r"[^\s'\",:)\]]*", "PATH", text)
    for pattern in more:
        text = re.sub(pattern, "", text, flags=re.M)
    for pattern, word in DIFFERS_ANYWAY:
        text = pattern.sub(word, text)
    return text


def outcome(kind, message=""):
    return kind + (": " + message if message and kind != "passed" else "")


def kind_of(text):
    return text.partition(": ")[0]


def judge(plain, cuwhy):
    """What a test is, from all its outcomes without cuwhy and with it; the first of each ran at the same moment.

    same; differs: cuwhy changes it; flaky: it varies without cuwhy as well; timing: it once took too long under cuwhy;
    once: another outcome that did not come again.
    """
    by_kind = {}
    for text in plain:
        by_kind.setdefault(kind_of(text), set()).add(text)
    if any(len(texts) > 1 for texts in by_kind.values()):      # its message is never the same
        plain, cuwhy = [kind_of(t) for t in plain], [kind_of(t) for t in cuwhy]
    new = [text for text in cuwhy if text not in plain]
    varies = len(set(plain)) > 1
    if not new:
        return "flaky" if varies or len(set(cuwhy)) > 1 else "same"
    if len(new) > 1 or len(cuwhy) == 1 or new[0].startswith("crashed"):    # one crash is one too many
        return "differs"
    if varies:
        return "flaky"
    return "timing" if new[0].startswith("timed out") else "once"
