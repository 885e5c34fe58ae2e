# SPDX-License-Identifier: Apache-2.0
# A moment that never was: said as it is, with a moment that was, and never shown as another one.
S=$BUILD/../tests/fuzz/corpus/snapshot
cuwhy run --gpu sim:tiny --out o gpu alloc 1 >/dev/null 2>&1
cuwhy memory --at oom o
echo "status $?"
cuwhy memory --at oom "$S/shape-1.13" | sed "s|$S/||"
cuwhy memory --at oom,end o
echo "status $?"
cuwhy memory --at peak,oom --json "$S/shape-1.13" | sed "s|$S/||g"
