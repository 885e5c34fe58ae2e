# SPDX-License-Identifier: Apache-2.0
# A program that uses the GPU well: not a word, nothing left behind.
cuwhy run --gpu sim:tiny gpu ok
echo "status $?"
find "$T" "$XDG_RUNTIME_DIR" -mindepth 1
