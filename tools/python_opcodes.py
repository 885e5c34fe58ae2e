#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes kb/python_opcodes.def: what each opcode of CPython does to the stack and where it jumps, asked of the interpreters.

    tools/python_opcodes.py python3.9 python3.10 ... > kb/python_opcodes.def

Each interpreter runs this file with --rows. Specialized and instrumented forms have the row of the opcode that they
stand for.
"""
import subprocess
import sys

HEAD = """/* SPDX-License-Identifier: Apache-2.0
 * CPython's opcodes: what each does to the stack, and where it jumps. Made by tools/python_opcodes.py from CPython's own
 * tables (dis.stack_effect, opcode); do not edit.
 *
 * PY_OP(minor, number, name, caches, effect, times, form, jumped, kind)
 *	caches	units of inline cache that follow
 *	effect	on the depth of the stack: effect + times * form(argument); forms: NONE 0, ARG the argument, BIT its lowest bit,
 *		ONES the number of ones in its low 4 bits, FOUR whether bit 2 is set, THREE whether it is 3, EX for UNPACK_EX
 *	jumped	the effect where it jumps
 *	kind	PLAIN, EXT (EXTENDED_ARG), FOR (FOR_ITER), FWD, BACK and ABS (jumps; GO_: always), TRY (the target is a handler),
 *		AGAIN (a jump back that is no loop: await, the end of a handler), END (control does not pass),
 *		ANEXT (END_ASYNC_FOR), EXC (PUSH_EXC_INFO: a handler begins), STORE (STORE_FAST; two variables in an
 *		argument: STORE_LOAD, STORE_STORE)
 */
"""
ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"}
FORMS = {
    "NONE": lambda a: 0, "ARG": lambda a: a, "BIT": lambda a: a & 1, "ONES": lambda a: bin(a & 15).count("1"),
    "FOUR": lambda a: int(a & 4 == 4), "THREE": lambda a: int(a == 3), "EX": lambda a: (a & 255) + (a >> 8),
}


def effects(dis, number, jump):
    """As (effect, times, form): None if CPython does not say."""
    known = []
    for arg in list(range(16)) + [0x101, 0x203, 255]:
        for given in (arg, None):
            try:
                known.append((arg, dis.stack_effect(number, given, jump=jump)))
                break
            except ValueError:
                pass
    for form, f in FORMS.items():
        for times in (0,) if form == "NONE" else (1, -1, -2):
            effect = known[0][1] - times * f(known[0][0]) if known else None
            if known and all(effect + times * f(arg) == said for arg, said in known):
                return effect, times, form
    return None


def kind_of(dis, name, number):
    if name == "EXTENDED_ARG":
        return "EXT"
    if name == "FOR_ITER":
        return "FOR"
    if name in ("STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"):
        return {"STORE_FAST": "STORE", "STORE_FAST_LOAD_FAST": "STORE_LOAD"}.get(name, "STORE_STORE")
    if name == "PUSH_EXC_INFO":
        return "EXC"
    if name == "END_ASYNC_FOR":
        return "ANEXT"
    if name in ENDS:
        return "END"
    if name.startswith("SETUP_") and number in dis.hasjrel:
        return "TRY"
    if name == "JUMP_BACKWARD_NO_INTERRUPT":
        return "AGAIN"
    always = "GO_" if name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE") else ""
    if number in dis.hasjabs:
        return always + "ABS"
    if number in dis.hasjrel:
        return always + ("BACK" if "BACKWARD" in name else "FWD")
    return "PLAIN"


def stand_ins(opcode, dis, minor):
    """Numbers of the forms that stand for another opcode: {number: (name, the other's name)}."""
    found = {}
    if minor >= 13:
        import _opcode_metadata
        for base, names in _opcode_metadata._specializations.items():
            found.update((_opcode_metadata._specialized_opmap[name], (name, base)) for name in names)
    elif minor >= 11:
        for base, names in opcode._specializations.items():
            found.update((dis._all_opname.index(name), (name, base)) for name in names)
        if minor == 11:     # a pair in one: the second half is still there
            found.update((number, (name, name.split("__")[0])) for number, name in enumerate(dis._all_opname) if "__" in name)
            for name, base in (("JUMP_BACKWARD_QUICK", "JUMP_BACKWARD"), ("RESUME_QUICK", "RESUME"),
                               ("EXTENDED_ARG_QUICK", "EXTENDED_ARG")):
                if name in dis._all_opname:
                    found[dis._all_opname.index(name)] = (name, base)
    for name, number in dis.opmap.items():
        base = name.replace("INSTRUMENTED_", "")
        if name.startswith("INSTRUMENTED_") and base in dis.opmap and number < 256:
            found[number] = (name, base)
    return found


def rows():
    import dis
    import opcode
    minor = sys.version_info[1]
    caches = getattr(opcode, "_inline_cache_entries", {})
    caches = caches if isinstance(caches, dict) else {dis.opname[n]: count for n, count in enumerate(caches) if count}
    others = stand_ins(opcode, dis, minor)
    plain = {}
    for name, number in sorted(dis.opmap.items(), key=lambda pair: pair[1]):
        if number > 255 or number in others or name.startswith("INSTRUMENTED_") or name in ("CACHE", "RESERVED"):
            continue
        through, jumped = effects(dis, number, False), effects(dis, number, True)
        if name == "GEN_START":     # takes what send() leaves there, before the first instruction
            through = (0, 0, "NONE")
        if name == "RETURN_GENERATOR":      # what send() leaves there: CPython counts it from the start in 3.11 and 3.12
            through = (1, 0, "NONE")
        if through and jumped:
            plain[name] = (number, (caches.get(name, 0),) + through + (jumped[0], kind_of(dis, name, number)))
    lines = [(number, name, row) for name, (number, row) in plain.items()]
    lines += [(number, name, plain[base][1]) for number, (name, base) in others.items() if base in plain]
    for number, name, row in sorted(lines):
        print("PY_OP(%d, %d, %s, %s)" % ((minor, number, name, ", ".join(str(part) for part in row))))


if sys.argv[1:] == ["--rows"]:
    rows()
else:
    sys.stdout.write(HEAD)
    for python in sys.argv[1:]:
        sys.stdout.write(subprocess.run([python, __file__, "--rows"], check=True, stdout=subprocess.PIPE,
                                        universal_newlines=True).stdout)
