# SPDX-License-Identifier: Apache-2.0
# Where it cannot be written.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy report -o nowhere/page.html o
