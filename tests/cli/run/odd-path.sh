# SPDX-License-Identifier: Apache-2.0
# Spaces and colons in the path of cuwhy: LD_PRELOAD still works.
mkdir -p 'a b:c/sim'
cp "$BUILD/cuwhy" "$BUILD/libcuwhy-rec.so" 'a b:c'
cp "$BUILD/sim/libcuda.so.1" 'a b:c/sim'
'a b:c/cuwhy' run --json --gpu sim:tiny gpu grid 1 2>&1 | grep -o '"cause":"[a-z-]*"' | head -1
ls "$XDG_RUNTIME_DIR"
