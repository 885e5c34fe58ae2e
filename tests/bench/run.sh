#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What recording costs, on the simulated GPU: `make bench`. No GPU and no PyTorch needed.
#
#   tests/bench/run.sh [build]
set -eu
build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
python=$("$python" -c 'import sys; print(sys.executable)')
helper=$(cd "$here" && "$python" -B -c 'import meter, sys; print(meter.build(sys.argv[1]))' \
	"$build/tests")
echo "## One recorded call, simulated GPU"
echo
"$build/cuwhy" run --gpu sim:h200 -- "$python" -B "$here/bench_calls.py" "$helper"
"$build/cuwhy" run --gpu sim:h200 -- "$python" -B "$here/bench_audit.py"
echo "## One event, counted"
echo
"$python" -B "$here/bench_parts.py" --build "$build"
echo "## Start and end of a process"
echo
"$python" -B "$here/bench_start.py" "$build"
