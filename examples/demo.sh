#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two failing programs on a simulated GPU, each explained. Needs no GPU.
build=$(cd "${1:-build}" && pwd)
here=$(dirname "$0")
cuwhy=$build/cuwhy

show() {
	printf '\n$ cuwhy run --gpu sim:%s python3 %s\n' "$1" "$2"
	"$cuwhy" run --gpu "sim:$1" python3 "$2"
	printf '[the program ended with status %d, as it does without cuwhy]\n' $?
}

# the demo's recordings stay with the build
CUWHY_DIR=$build/demo
PYTHONPATH=$here/site-packages
export CUWHY_DIR PYTHONPATH PYTHONDONTWRITEBYTECODE=1
show h200 "$here/too_large_a_grid.py"
show rtx4090 "$here/too_much_memory.py"
printf '\nThese GPUs were simulated. On a machine with a real one:  %s run python3 your_program.py\n' "$cuwhy"
