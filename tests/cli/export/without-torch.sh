# SPDX-License-Identifier: Apache-2.0
# A program that never used PyTorch.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy export --torch-snapshot -o x o; status=$?
[ ! -e x ] || echo written
exit $status
