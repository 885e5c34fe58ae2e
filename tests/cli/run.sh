#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the command-line cases: run.sh BUILD [PATTERN]; =NAME is that case alone. UPDATE=1 rewrites what is expected.
#
# A case is tests/cli/<command>/<case>.sh. It runs in an empty folder $T with `cuwhy` first in PATH
# and the programs of tests/cli/programs beside it. Expected: <case>.stdout.exact and .stderr.exact
# (as they are) or .glob (each line a shell pattern; a line "..." at the end allows more lines),
# nothing if there is no such file; <case>.exit (0 if there is none). A case that exits with
# 77 is skipped, and its stdout says why. $T and $BUILD stand for their folders in the files.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$(realpath "$1")
pattern=${2:-}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
passed=0 failed=0 skipped=0

mkdir -p "$build/tests/cli"
for c in tests/cli/programs/*.c; do
	p=$build/tests/cli/$(basename "$c" .c)
	# under another name at first: cases run side by side, and each comes through here
	[ "$p" -nt "$c" ] || { ${CC:-cc} -O1 -D_GNU_SOURCE -w -o "$p.$$" "$c" -ldl && mv "$p.$$" "$p"; } || exit 2
done

# Every line of $2 against the pattern in the same line of $1.
lines_match() {
	while :; do
		IFS= read -r want <&3 || want_end=1
		IFS= read -r got <&4 || got_end=1
		if [ -n "${want_end:-}" ] || [ -n "${got_end:-}" ]; then
			[ "${want_end:-}" = "${got_end:-}" ] || [ "$want" = ... ]
			return
		fi
		[ "$want" != ... ] || return 0
		# shellcheck disable=SC2254
		case $got in
		$want) ;;
		*) return 1 ;;
		esac
	done 3<"$1" 4<"$2"
}

# One stream: case, stream name, file with the output.
check_stream() {
	if [ -f "$1.$2.glob" ]; then
		(lines_match "$1.$2.glob" "$3") && return
	elif [ -f "$1.$2.exact" ]; then
		cmp -s "$1.$2.exact" "$3" && return
	elif [ ! -s "$3" ]; then
		return
	fi
	if [ -n "${UPDATE:-}" ] && [ ! -f "$1.$2.glob" ]; then
		if [ -s "$3" ]; then cp "$3" "$1.$2.exact"; else rm -f "$1.$2.exact"; fi
		return
	fi
	echo "# $2 differs:"
	for f in "$1.$2.glob" "$1.$2.exact" /dev/null; do
		[ ! -e "$f" ] || break
	done
	diff "$f" "$3" | head -20 | sed 's/^/#   /'
	return 1
}

check_exit() {
	want=0
	[ ! -f "$1.exit" ] || read -r want <"$1.exit"
	[ "$2" != "$want" ] || return 0
	if [ -n "${UPDATE:-}" ]; then
		if [ "$2" = 0 ]; then rm -f "$1.exit"; else echo "$2" >"$1.exit"; fi
		return 0
	fi
	echo "# exit status $2, expected $want"
	return 1
}

run_case() {
	T=$root/t
	rm -rf "$T" "$root/rt"
	mkdir -p "$T" "$root/rt"
	(
		cd "$T" || exit 2
		export T HOME="$T" XDG_RUNTIME_DIR="$root/rt" PATH="$build:$build/tests/cli:$PATH"
		export LC_ALL=C BUILD="$build" TERM=dumb CUWHY_WRITES_MODE=real
		unset CUWHY_DIR XDG_STATE_HOME CUWHY_DEBUG NO_COLOR LD_PRELOAD CUWHY_SIM TMPDIR
		exec sh "$1" >"$root/stdout.raw" 2>"$root/stderr.raw" </dev/null
	)
	status=$?
	for s in stdout stderr; do
		sed "s#$T#\$T#g; s#$build#\$BUILD#g" "$root/$s.raw" >"$root/$s"
	done
}

for case in tests/cli/*/*.sh; do
	base=${case%.sh}
	name=${base#tests/cli/}
	case =$name in
	"$pattern" | *"${pattern#=}"*) [ "${pattern#=}" = "$pattern" ] || [ "=$name" = "$pattern" ] || continue ;;
	*) continue ;;
	esac
	run_case "$PWD/$case"
	if [ "$status" -eq 77 ]; then
		skipped=$((skipped + 1))
		echo "ok - $name # SKIP $(head -1 "$root/stdout")"
		continue
	fi
	ok=1
	check_exit "$base" "$status" || ok=0
	check_stream "$base" stdout "$root/stdout" || ok=0
	check_stream "$base" stderr "$root/stderr" || ok=0
	if [ $ok = 1 ]; then
		passed=$((passed + 1))
		echo "ok - $name"
	else
		failed=$((failed + 1))
		echo "not ok - $name"
	fi
done
[ "$skipped" -eq 0 ] || echo "# $skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
