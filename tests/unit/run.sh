#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests given as arguments (after the build folder) and adds up their results.
set -u
build=$1
shift
passed=0
failed=0
skipped=0
export CMOCKA_MESSAGE_OUTPUT=TAP
export SIM_LIB="$build/sim/libcuda.so.1"
for t in "$@"; do
	out=$("$t" 2>&1)
	status=$?
	# cmocka writes a skipped test as "not ok N # SKIP"
	s=$(printf '%s\n' "$out" | grep -c '^[a-z ]*ok [0-9]* # SKIP')
	p=$(printf '%s\n' "$out" | grep '^ok ' | grep -vc '# SKIP')
	f=$(printf '%s\n' "$out" | grep '^not ok ' | grep -vc '# SKIP')
	# a test program that died has at least one failure, whatever it printed before
	[ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
	[ "$f" -ne 0 ] && printf '%s\n' "$out"
	printf '%-28s %3d passed, %d failed, %d skipped\n' "$(basename "$t")" "$p" "$f" "$s"
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
done
echo "unit: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
