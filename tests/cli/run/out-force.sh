# SPDX-License-Identifier: Apache-2.0
# --force replaces an older recording.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy run --out o --force echo ran
ls o
