#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What can be checked without running cuwhy: the recorder's dependencies and exports, who includes
# whom, headers that compile alone, a test for every cause.
set -u
build=${1:-build}
passed=0
failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

claim() { # claim NAME: reads what contradicts it from standard input
	if [ -s "$tmp/against" ]; then
		failed=$((failed + 1))
		echo "not ok - $1"
		sed 's/^/    /' "$tmp/against" | head -n 20
	else
		passed=$((passed + 1))
	fi
}

rec=$build/libcuwhy-rec.so
readelf -d "$rec" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\.6$' >"$tmp/against"
claim "the recorder needs libc alone"

# exported: the rows of cuda_api.def with their twins, and the names below
{
	sed -n 's/^CU\(_OWN\)\{0,1\}(\([0-9]*\), \([A-Za-z0-9_]*\),.*/\3/p' kb/cuda_api.def
	sed -n 's/^CU\(_OWN\)\{0,1\}_S(\([0-9]*\), \([A-Za-z0-9_]*\),.*/\3\n\3_ptsz/p' kb/cuda_api.def
	sed -n 's/^CU_D(\([0-9]*\), \([A-Za-z0-9_]*\),.*/\2\n\2_ptds/p' kb/cuda_api.def
	cat src/recorder/exports.txt
} | grep -v '^#' | sort -u >"$tmp/want"
nm -D --defined-only "$rec" | awk '$2 ~ /[TWDBVu]/ {sub(/@.*/, "", $3); print $3}' | sort -u >"$tmp/have"
diff "$tmp/want" "$tmp/have" >"$tmp/against"
claim "the recorder exports what the table and exports.txt say, and nothing else"

# UND: it defines a dlsym of glibc 2.34 itself
objdump -T "$rec" | sed -n '/\*UND\*/s/.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\}.*/\1/p' | sort -uV |
	awk -F. '$1 > 2 || $2 > 28 {print "needs GLIBC_" $0}' >"$tmp/against"
claim "the recorder needs no newer glibc than 2.28"

# who may include whom: an arrow may skip ahead but never point back, and no input knows about another
part() { # part PATH-BELOW-SRC: its layer, and for an input its kind
	case $1 in
	input/*/*) echo "input $(echo "$1" | cut -d/ -f2)" ;;
	*) echo "$(echo "$1" | cut -d/ -f1) -" ;;
	esac
}
order="base compat formats probe case input rules judge write cmd"
rank() { n=0; for d in $order; do n=$((n + 1)); [ "$d" = "$1" ] && echo $n && return; done; echo 0; }
grep -rnE '^#include "[a-z]+/' src | grep -v '^src/\(sim\|recorder\|portable\)/' | while IFS=: read -r file line text; do
	from=$(part "${file#src/}")
	to=$(part "$(echo "$text" | sed 's/.*"\(.*\)".*/\1/')")
	if [ "$(rank "${to% *}")" -gt "$(rank "${from% *}")" ]; then
		echo "$file:$line: $text"
	elif [ "${from% *} ${to% *}" = "input input" ] && [ "$from" != "$to" ] && [ "$to" != "input -" ]; then
		echo "$file:$line: an input includes another: $text"
	fi
done >"$tmp/against"
claim "no include turns back against $order, and no input knows another"

grep -rnE '^#include "(base|compat|formats|probe|case|input|rules|judge|write|cmd|sim)/' src/recorder >"$tmp/against"
claim "the recorder includes nothing of the CLI"

for h in include/cuwhy/*.h $(find src -name '*.h'); do
	echo "#include \"$h\"" | ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -I. -I"$(dirname "$h")" \
		-fsyntax-only -x c - 2>"$tmp/err" || { echo "$h"; head -n 3 "$tmp/err"; }
done >"$tmp/against"
claim "every header compiles alone"

python3 tools/format.py --check >"$tmp/against" 2>&1
if [ $? -eq 3 ]; then
	echo "tree: skipped, no clang-format-14 to check the format of C files"
else
	claim "every C file is formatted as .clang-format says (make format)"
fi

for f in kb/causes/*.md; do
	id=$(basename "$f" .md)
	case $id in none | unknown) continue ;; esac
	grep -rqE "(cause[=:] ?[a-z0-9,|-]*|\")$id" tests/e2e tests/gpu/cases tests/gpu/faults tests/unit tests/text/own || echo "$id"
done >"$tmp/against"
claim "every cause has a program that triggers it"

grep -rnE 'TODO|FIXME|XXX|HACK' src include kb tools Makefile | grep -v 'tools/check_tree.sh' | grep -v XXXXXX >"$tmp/against"
claim "nothing in the product is marked unfinished"

grep -nE '"resolved"|https?://' web/package-lock.json web/package.json web/.npmrc >"$tmp/against"
claim "the packages of the report page are named without addresses"

awk 'length > 120 {print FILENAME ":" FNR ": " length " columns"}' web/src/*.js web/*.mjs >"$tmp/against"
claim "no line of JavaScript is longer than 120 columns"

python3 tools/check_docs.py "$build" >"$tmp/against" 2>&1
claim "every link, file, option, make target and variable that the documents name exists"

python3 tools/check_programs.py "$build" >"$tmp/against" 2>&1
claim "every program that a cause shows is run on a GPU, expects that cause, stands alone, is small and compiles"

python3 tools/render_causes.py --check >"$tmp/against" 2>&1
claim "docs/causes is what kb/causes says"

echo "tree: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
