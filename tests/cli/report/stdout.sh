# SPDX-License-Identifier: Apache-2.0
# To standard output: the page and nothing else.
[ -s "$BUILD/report.html" ] || { echo "built without the page"; exit 77; }
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy report -o - o > page && head -n 1 page && tail -n 1 page
