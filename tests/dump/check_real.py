#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the real core dumps of tests/dump/real: cuwhy names the culprit, and nothing but our own code is inside.

    tests/dump/check_real.py BUILD [FOLDER [NAME]]

Beside each NAME.cudacore.gz lies NAME.json: the functions it may contain ("functions"), what `cuwhy explain --json`
must say ("expect": keys left out are not compared), where many threads faulted, how the address follows from
the thread ("linear"), and, where the address may have been lost, what it was if it is given ("address"). The scrubber itself is checked on these dumps, too.
"""
import glob
import gzip
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LARGEST, LARGEST_ALL = 100 << 10, 2 << 20
KEPT = (".symtab", ".strtab", ".shstrtab", ".nv.global.init", ".nv.constant4")

spec = importlib.util.spec_from_file_location("scrub", os.path.join(HERE, "scrub.py"))
scrub = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scrub)


def explain(build, path):
    done = subprocess.run([os.path.join(build, "cuwhy"), "explain", "--json", path], capture_output=True, text=True,
                          timeout=300, check=False)
    return json.loads(done.stdout)


def differences(want, got, at=""):
    """Where `got` is not what `want` says; keys that `want` leaves out do not matter."""
    if isinstance(want, dict) and isinstance(got, dict):
        return [d for key in want for d in differences(want[key], got.get(key), f"{at}.{key}".lstrip("."))]
    return [] if want == got else [f"{at} is {got!r}, not {want!r}"]


def check_linear(rule, fault):
    index = fault["block"][0] * rule["block"] + fault["thread"][0]
    want = hex(rule["base"] + index * rule["step"])
    return [] if fault["address"] == want else [f"fault.address is {fault['address']}, not {want}"]


def check_answer(build, path, about):
    got = explain(build, path)
    wrong = differences(about["expect"], got)
    if "linear" in about and got.get("fault"):
        wrong += check_linear(about["linear"], got["fault"])
    if "address" in about and got.get("fault") and got["fault"]["address"] not in (None, about["address"]):
        wrong.append(f"fault.address is {got['fault']['address']}, not {about['address']}")
    return wrong


def check_content(path, about):
    """Images contain only our functions, and scrubbing again changes nothing."""
    dump, wrong = scrub.Elf(scrub.read(path)), []
    for s in dump.sections:
        if s.type in (scrub.ELF_IMAGE, scrub.CUDBG + 1, scrub.CUDBG + 2, scrub.CUDBG + 3, scrub.CUDBG + 4):
            wrong.append(f"section {s.name} has memory or a second image")
        if s.type == scrub.IMAGE:
            image = scrub.Elf(s.data)
            wrong += [f"code of {n}" for n in scrub.strangers(image, set(about["functions"]))]
            wrong += [f"section {t.name} in an image" for t in image.sections
                      if t.name and not t.name.startswith(".text.") and t.name not in KEPT]
    if os.path.getsize(path) > LARGEST:
        wrong.append(f"{os.path.getsize(path)} bytes are too many")
    return wrong


def check_again(path, about, folder):
    target = os.path.join(folder, "again.cudacore")
    scrub.scrub(path, target, about["keep"], about["functions"])
    return [] if scrub.read(target) == scrub.read(path) else ["scrubbed once more it is another file"]


def check_small(build, path, about, folder):
    target = os.path.join(folder, "small.cudacore.gz")
    scrub.scrub(path, target, about["keep"], about["functions"], small=True)
    return ["small: " + w for w in check_answer(build, target, about)]


def check_refusal(path, about, folder):
    """An undeclared function stops the scrubber, and no file appears."""
    target, wrong = os.path.join(folder, "refused.cudacore"), []
    for name in functions_of(path):
        others = [f for f in about["functions"] if f != name]
        keep = others[:1] if name in about["keep"] else about["keep"]
        try:
            scrub.scrub(path, target, keep or ["another kernel"], others)
            wrong.append(f"{name} was not declared, and not refused")
        except scrub.Refused:
            pass
    return wrong + (["a refused file was written"] if os.path.exists(target) else [])


def functions_of(path):
    return {n for s in scrub.Elf(scrub.read(path)).sections if s.type == scrub.IMAGE
            for n, _ in scrub.functions(scrub.Elf(s.data))}


def check_many_sections(build, path, about, folder):
    """More sections than an ELF header can count, with memory that must be removed."""
    elf = scrub.Elf(scrub.read(path))
    extra = [scrub.make_section(".cudbg.global.0", scrub.CUDBG + 2, b"somebody's data", addr=i) for i in range(70000)]
    large, target = os.path.join(folder, "large.cudacore"), os.path.join(folder, "fewer.cudacore")
    with open(large, "wb") as f:
        f.write(elf.write(elf.sections[1:] + extra))
    with open(large, "rb") as f:
        header = f.read(64)
    if struct.unpack_from("<HH", header, 60) != (0, 0xFFFF):
        return ["70,000 sections are not counted in section 0"]
    wrong = ["many sections: " + w for w in check_answer(build, large, about)]
    scrub.scrub(large, target, about["keep"], about["functions"])
    return wrong + ([] if scrub.read(target) == scrub.read(path) else ["memory is left of a dump with 70,000 sections"])


def check_hostile(path, folder):
    """Truncated files end in a message, never in a file or a traceback."""
    data, cut, target = scrub.read(path), os.path.join(folder, "cut"), os.path.join(folder, "never")
    for size in (0, 3, 63, 64, len(data) // 2, len(data) - 1):
        with gzip.open(cut, "wb", 1) as f:
            f.write(data[:size])
        try:
            scrub.scrub(cut, target)
            return [f"a file cut at {size} was scrubbed"]
        except scrub.NotADump:
            pass
    return ["a file was written"] if os.path.exists(target) else []


def words_kept(names):
    """The section with strings that is left of an image of ours whose objects have these names."""
    words = b"a < b\0/home/somebody/x.cu\0"
    elf, strings = scrub.Elf(bytes(scrub.finish(bytearray(b"\x7fELF\x02" + bytes(59)), [bytearray(64)]))), scrub.Strings()
    symbols = [(strings.add("k"), 0x12, 0, 1, 0, 16)] + [(strings.add(n), 1, 0, 2, 64, 8) for n in names]
    rows = b"".join(scrub.SYM.pack(*s) for s in symbols)
    image = elf.write([scrub.make_section(".text.k", scrub.PROGBITS, bytes(16), flags=6),
                       scrub.make_section(scrub.DATA, scrub.PROGBITS, words),
                       scrub.make_section(".symtab", scrub.SYMTAB, rows, link=4, entsize=scrub.SYM.size),
                       scrub.make_section(".strtab", scrub.STRTAB, bytes(strings.data))])
    left = scrub.Elf(scrub.scrub_image(image, {"k"}, {"k"}))
    objects = {name for name, symbol in scrub.symbols_of(left, scrub.OBJECT)}
    return [s.data for s in left.sections if s.name == scrub.DATA], objects


def check_words():
    """The texts of assertions stay, but not the folders in them; next to a library's table, none of them stay."""
    if words_kept(["$str", "__unnamed_1"]) != ([b"a < b\0/xxxx/xxxxxxxx/x.cu\0"], {"$str", "__unnamed_1"}):
        return ["the words of assertions are not left as they should"]
    return [] if words_kept(["$str", "__cudart_i2opi_f"]) == ([], set()) else ["a table of a library is left"]


def check(build, path):
    with open(path.replace(".cudacore.gz", ".json"), encoding="utf-8") as f:
        about = json.load(f)
    with tempfile.TemporaryDirectory() as folder:
        return (check_answer(build, path, about) + check_content(path, about) + check_again(path, about, folder) +
                check_small(build, path, about, folder) + check_refusal(path, about, folder))


def main():
    build, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "real")
    paths = sorted(glob.glob(os.path.join(folder, (sys.argv[3] if len(sys.argv) > 3 else "*") + ".cudacore.gz")))
    failed = 0
    for path in paths:
        wrong = check(build, path)
        if path == paths[0]:
            with open(path.replace(".cudacore.gz", ".json"), encoding="utf-8") as f:
                about = json.load(f)
            with tempfile.TemporaryDirectory() as temporary:
                wrong += check_many_sections(build, path, about, temporary) + check_hostile(path, temporary) + check_words()
        failed += bool(wrong)
        for w in wrong:
            print(f"  FAIL {os.path.basename(path)}: {w}")
    if not paths or sum(os.path.getsize(p) for p in paths) > LARGEST_ALL:
        print("  FAIL no dumps, or too many bytes of them")
        failed += 1
    print(f"real dumps: {len(paths) - min(failed, len(paths))} right, {failed} wrong")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
