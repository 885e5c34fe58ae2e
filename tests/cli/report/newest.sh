# SPDX-License-Identifier: Apache-2.0
# Without a recording: the newest one; -o says where to.
export CUWHY_DIR=$T/state
cuwhy run --gpu sim:tiny gpu grid 1 2>/dev/null
cuwhy report --json -o page.html | sed "s/\"bytes\":[0-9]*/\"bytes\":N/"
ls
