# SPDX-License-Identifier: Apache-2.0
"""What `make check-wheels` relies on, as far as it can be tested without the network."""
import os
import subprocess
import sys

from toolbox import HERE, Skip, same

sys.path.insert(0, os.path.join(HERE, "..", "wheels"))


def rule__the_recorders_tables_of_symbols_can_be_read(box):
    """By their form in the source; and what the recorder exports of them is what they name."""
    import check
    import elf_names
    symbols = check.symbols_of_recorder()
    assert symbols["evaluate"][0] == "libtorch_cpu.so" and symbols["cudaSetDevice"][0] == "libcudart", symbols
    exported, _ = elf_names.read_file(box.recorder)
    wrapped = {s for f in check.supported(symbols)[1] if f.area in ("cuda", "c10") for s in f.spellings}
    assert len(wrapped) >= 9, wrapped
    same({s for s in wrapped if symbols[s][1] not in exported}, set(), "not exported")


def rule__the_names_of_a_library_are_those_that_nm_shows(box):
    import elf_names
    defined, used = elf_names.read_file(box.recorder)
    try:
        shown = subprocess.run(["nm", "-D", box.recorder], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise Skip("no nm")
    rows = [line.split() for line in shown.splitlines()]
    names = lambda kinds: {r[-1].split("@")[0] for r in rows if r[-2] in kinds}
    same(defined - names("A"), names("TWDBVuiR") - names("A"), "defined")
    same(names("U") - used - {"__environ"}, set(), "not looked up")     # listed beside its alias, environ


def rule__a_missing_spelling_is_found_by_its_function(box):
    import check
    new = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jbPNS0_19CUDAErrorLogCaptureE"
    have = {"libc10_cuda.so": {"defined": [new, "_ZN3c104cuda5otherEv"], "used": []}}
    symbols = {"check_i": ("libc10_cuda.so", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib")}
    feature = check.Feature(True, "check", "cuda", "torch-2.0", ["check_i"])
    facts = {"wheel": "torch-9.9-1-cp311-cp311-x.whl", "cuda": "12.0", "library": have}
    judged = check.Release("9.9", facts, symbols, [feature])
    same(([f.name for f in judged.bad()], judged.cells), (["check"], {"check": "MISSING"}), "judged")
    same(check.similar(symbols["check_i"][1], have), ["libc10_cuda.so: " + new], "names like it")
    feature.since = (10, 0)
    same(check.Release("9.9", facts, symbols, [feature]).bad(), [], "a release before it was counted on")
    symbols["check_i"] = ("libc10_cuda.so", new)
    same(check.Release("10.1", facts, symbols, [feature]).cells, {"check": "yes!"}, "there, and called by nobody")
