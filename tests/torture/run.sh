#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kills a program with SIGKILL at random moments; its recording must always open.
#
#   run.sh BUILD [ROUNDS]
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$(realpath "$1")
rounds=${2:-${ROUNDS:-1000}}
range=${RANGE:-20000}		# the latest moment of death, in microseconds
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$build/tests"
${CC:-cc} -O2 -D_GNU_SOURCE -Wall -Wextra -o "$build/tests/victim" tests/torture/victim.c \
	-ldl -lpthread -lrt || exit 2
PATH=$build:$PATH
export CUWHY_WRITES_MODE=real XDG_RUNTIME_DIR="$tmp" CUWHY_DIR="$tmp/state" XDG_STATE_HOME="$tmp/home"

passed=0 failed=0 parts=0 empty=0 round=0
fail() {
	failed=$((failed + 1))
	echo "not ok - round $round: $1"
}

while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1))
	rm -rf "$tmp/out"
	cuwhy run --json --gpu sim:tiny --out "$tmp/out" "$build/tests/victim" "$round" "$range" \
		2>"$tmp/err" >&2
	status=$?
	if [ $status -ne 137 ]; then
		fail "status $status: $(head -c 300 "$tmp/err")"
		continue
	fi
	cuwhy explain --json "$tmp/out" >"$tmp/json" 2>"$tmp/err"
	status=$?
	if [ $status -gt 1 ] || [ -s "$tmp/err" ] || ! grep -q '^{.*"cause"' "$tmp/json"; then
		fail "explain: status $status: $(head -c 300 "$tmp/err" "$tmp/json")"
		continue
	fi
	part=none
	for f in "$tmp"/out/*.cwr; do
		[ ! -e "$f" ] || part=$f
	done
	if [ "$part" = none ]; then
		empty=$((empty + 1))	# killed before there was anything to record
	else
		parts=$((parts + 1))
	fi
	passed=$((passed + 1))
done
left=$(find "$tmp" -maxdepth 1 -name 'cuwhy-*' | wc -l)
[ "$left" -eq 0 ] || fail "$left private folders were left behind"
echo "torture: $parts recordings opened, $empty killed before CUDA was used"
[ "$parts" -gt 0 ] || fail "no round got as far as recording"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
