#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Failing programs on simulated GPUs, each explained; one of them with real PyTorch, where it is installed. Needs no GPU.
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
PYTHONPATH=$here/site-packages${PYTHONPATH:+:$PYTHONPATH}
export CUWHY_DIR PYTHONPATH PYTHONDONTWRITEBYTECODE=1
show h200 "$here/too_large_a_grid.py"
show rtx4090 "$here/too_much_memory.py"
has_pytorch() {	# built for CUDA
	python3 -c '
import importlib.util, os, sys
found = importlib.util.find_spec("torch")
lines = open(os.path.join(os.path.dirname(found.origin), "version.py")) if found else []
sys.exit(not any(line.startswith("cuda") and chr(39) in line for line in lines))' 2>/dev/null
}

if has_pytorch; then
	show rtx3060 "$here/too_large_a_model.py"
fi
printf '\nThese GPUs were simulated. On a machine with a real one:  %s run python3 your_program.py\n' "$cuwhy"
