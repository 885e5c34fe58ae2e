#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Three programs on simulated GPUs, and what cuwhy says about them: demo.sh BUILD. With the installed PyTorch, or, where there is none,
# with a stand-in that allocates like it. Needs no GPU.
# demo.sh --needs: which of make's goals it needs.
set -u
python=${PYTHON:-python3}

# built for CUDA, with the Python that runs the demo; CUWHY_DEMO=stand-in: as if it were not installed
has_pytorch() {
	[ "${CUWHY_DEMO:-}" != stand-in ] &&
		"$python" -c '
import importlib.util, os, sys
found = importlib.util.find_spec("torch")
lines = open(os.path.join(os.path.dirname(found.origin), "version.py")) if found else []
sys.exit(not any(line.startswith("cuda") and chr(39) in line for line in lines))' 2>/dev/null
}

if [ "${1:-}" = --needs ]; then
	if has_pytorch; then echo parts; else echo core; fi
	exit 0
fi

build=$(cd "${1:-build}" && pwd)
PATH=$build:$PATH
cd "$(dirname "$0")" || exit 2
work=$build/demo

# the demo's recordings stay with the build
CUWHY_DIR=$work/recordings
PYTHONPATH=$PWD/site-packages${PYTHONPATH:+:$PYTHONPATH}
export PATH CUWHY_DIR PYTHONPATH PYTHONDONTWRITEBYTECODE=1

make_stand_in() {
	rm -rf "$work/site-packages"
	mkdir -p "$work/site-packages" && cp -R stand-in/site-packages/torch "$work/site-packages/" || return 1
	lib=$work/site-packages/torch/lib
	mkdir -p "$lib" &&
		${CC:-cc} -O2 -fPIC -shared -fexceptions -Wl,-soname,libc10.so -o "$lib/libc10.so" stand-in/profiler.c &&
		${CC:-cc} -O2 -fPIC -shared -fexceptions -Wl,-soname,libc10_cuda.so '-Wl,-rpath,$ORIGIN' -o "$lib/libc10_cuda.so" stand-in/allocator.c "$lib/libc10.so" -ldl
}

show() {	# show WHAT COMMAND...
	printf '\n\n%s\n\n$ ' "$1"
	shift
	echo "$*"
	"$@"
	status=$?
}

if has_pytorch; then
	echo "With the PyTorch of $python, on GPUs that are simulated: everything is real but the numbers."
else
	make_stand_in || exit 2
	PYTHONPATH=$work/site-packages:$PYTHONPATH
	echo "PyTorch is not installed: a stand-in that allocates like it takes its place, on GPUs that are simulated."
fi

show "1. WHY DID IT FAIL? A kernel reads past the end of a tensor. CUDA notices later, in another line." \
	cuwhy run --gpu sim:rtx4090 "$python" gather.py
printf '[status %d, as without cuwhy]\n' $status
show "2. WHY IS IT OUT OF MEMORY? FITS says what would have been enough, from the recorded allocations." \
	cuwhy run --gpu sim:rtx3060 "$python" evaluate.py
printf '[status %d, as without cuwhy]\n' $status
rm -f "$work/report.html"
cuwhy report -o "$work/report.html" >/dev/null || :
show "3. WILL IT FIT? One dry run without a GPU; each card is played back." \
	cuwhy fit --gpu rtx4060,rtx3060,rtx4090,a100-40gb "$python" train.py --batch-size 49152

printf '\n\nThe second failure as a page, with its memory over time. Open it:\n\n    %s\n' "$work/report.html"
printf '\nYour own program, on a real GPU:  %s run python3 train.py\n' "$build/cuwhy"
