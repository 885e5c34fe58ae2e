# SPDX-License-Identifier: Apache-2.0
# A runtime folder that is not there: another place is found.
export XDG_RUNTIME_DIR=/nonexistent
cuwhy run --gpu sim:tiny gpu grid 1 2>&1 >/dev/null | grep -c '^cuwhy: '
