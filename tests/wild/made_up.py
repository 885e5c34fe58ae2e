#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made-up data for the programs, the same every time: made_up.py KIND FOLDER.

digits: what torchvision's MNIST reads; characters: tokens for nanoGPT; words: texts for a language model.
"""
import os
import pickle
import random
import struct
import sys

IMAGES, TOKENS, WORDS = 512, 20000, 4000
LETTERS = "abcdefghijklmnopqrstuvwxyz .,\n"


def write(folder, name, content):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as stream:
        stream.write(content)


def digits(folder, chance):
    raw = os.path.join(folder, "MNIST", "raw")
    for name in ("train", "t10k"):
        write(raw, name + "-images-idx3-ubyte", struct.pack(">IIII", 2051, IMAGES, 28, 28) + chance.randbytes(IMAGES * 28 * 28))
        write(raw, name + "-labels-idx1-ubyte", struct.pack(">II", 2049, IMAGES) + bytes(chance.randrange(10) for _ in range(IMAGES)))


def characters(folder, chance):
    for name in ("train", "val"):
        write(folder, name + ".bin", struct.pack("<%dH" % TOKENS, *(chance.randrange(len(LETTERS)) for _ in range(TOKENS))))
    meta = {"vocab_size": len(LETTERS), "itos": dict(enumerate(LETTERS)), "stoi": {c: i for i, c in enumerate(LETTERS)}}
    write(folder, "meta.pkl", pickle.dumps(meta))


def words(folder, chance):
    known = ["".join(chance.choices(LETTERS[:26], k=4)) for _ in range(200)]
    for name in ("train", "valid", "test"):
        lines = [" ".join(chance.choices(known, k=20)) for _ in range(WORDS // 20)]
        write(folder, name + ".txt", ("\n".join(lines) + "\n").encode())


KINDS = {"digits": digits, "characters": characters, "words": words}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    KINDS[sys.argv[1]](sys.argv[2], random.Random(14))
