# SPDX-License-Identifier: Apache-2.0
# To standard output: the page and nothing else.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy report -o - o > page && head -n 1 page && tail -n 1 page
