#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tools that people already use, on a program under `cuwhy run`: each works or is rejected with a message.
#
#   tests/gpu/neighbors.sh build [python]
#
# A tool is first run without cuwhy; one that does not work here anyway is skipped, with a message.
set -u
cuwhy=$1/cuwhy
python=${2:-python3}
here=$(cd "$(dirname "$0")" && pwd)
program=$here/neighbor_program.py
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH=$PATH:/usr/local/cuda/bin
passed=0 failed=0 skipped=0 number=0

skip() {
	number=$((number + 1)) skipped=$((skipped + 1))
	echo "ok $number - $1 # SKIP $2"
}

pass() {
	number=$((number + 1)) passed=$((passed + 1))
	echo "ok $number - $1: $2"
}

fail() {
	number=$((number + 1)) failed=$((failed + 1))
	echo "not ok $number - $1: $2"
	sed 's/^/    # /' "$3" | tail -n 15
}

# right OUTPUT PATTERN: the program printed its result and the tool printed its own.
right() {
	grep -q '^neighbor: sum 1024.0$' "$1" && grep -Eq "$2" "$1"
}

# try NAME PATTERN TOOL…: PATTERN is what the tool itself must print.
try() {
	name=$1 pattern=$2
	shift 2
	timeout 120 "$@" "$python" "$program" >"$scratch/plain" 2>&1 </dev/null
	plain=$?
	if ! right "$scratch/plain" "$pattern"; then
		skip "$name" "does not work here without cuwhy either: $(tail -n 1 "$scratch/plain")"
		return
	fi
	timeout 180 "$cuwhy" run --out "$scratch/rec-$name" "$@" "$python" "$program" \
		>"$scratch/under" 2>&1 </dev/null
	status=$?
	if right "$scratch/under" "$pattern" && [ $status -eq $plain ]; then
		if grep -q '^cuwhy' "$scratch/under"; then
			fail "$name" "works, but cuwhy speaks though nothing failed" "$scratch/under"
		else
			pass "$name" "works"
		fi
	elif [ $status -ge 125 ] && [ $status -le 127 ] && grep -q '^cuwhy: ' "$scratch/under"; then
		pass "$name" "refused: $(grep '^cuwhy: ' "$scratch/under" | head -n 1)"
	else
		fail "$name" "exit $status, without cuwhy $plain" "$scratch/under"
	fi
}

# tool NAME PATTERN COMMAND…: like try, if the tool is installed.
tool() {
	name=$1 pattern=$2
	shift 2
	if command -v "$1" >/dev/null 2>&1; then
		try "$name" "$pattern" "$@"
	else
		skip "$name" "not installed"
	fi
}

if ! "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	for name in torch.profiler ncu nsys compute-sanitizer cuda-gdb; do
		skip "$name" "no device, or no PyTorch"
	done
else
	try torch.profiler '^profiler: [0-9]+ kernels$' env NEIGHBOUR_PROFILE=1
	tool ncu '==PROF== Profiling' ncu --clock-control none --launch-count 2 --section LaunchStats
	tool nsys 'Generated:' nsys profile --force-overwrite=true -o "$scratch/nsys" --stats=false
	tool compute-sanitizer 'ERROR SUMMARY: 0 errors' compute-sanitizer
	tool cuda-gdb 'exited normally' cuda-gdb -batch -ex run -ex bt --args
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
