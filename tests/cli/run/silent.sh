# SPDX-License-Identifier: Apache-2.0
# A program without CUDA: not a word, nothing left behind.
cuwhy run sh -c 'exit 3'
echo "status $?"
find "$T" "$XDG_RUNTIME_DIR" -mindepth 1
