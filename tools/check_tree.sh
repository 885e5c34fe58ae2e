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

# its libdl is libc's, wherever that is new enough
writes=$build/libcuwhy-writes.so
{
	readelf -d "$writes" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^lib\(c\.so\.6\|dl\.so\.2\)$'
	objdump -T "$writes" | sed -n '/\*UND\*/s/.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\}.*/\1/p' | sort -uV |
		awk -F. '$1 > 2 || $2 > 28 {print "needs GLIBC_" $0}'
	nm -D --undefined-only "$writes" | grep -E ' (open|stat|fopen|printf|snprintf|pthread)' 
} >"$tmp/against"
claim "the library for writes needs libc alone, of glibc 2.28, and calls nothing there that it redirects"
readelf -dW "$build/sim/libcuwhy-sim-loader.so" | grep NEEDED >"$tmp/against"
nm -D --undefined-only "$build/sim/libcuwhy-sim-loader.so" >>"$tmp/against"
claim "the audit library of a dry run needs no library, not even libc"

# the recorder is there from the start: what it has is not taken from what late libraries share, unless there is an audit library
for lib in "$build"/sim/*.so*; do
	readelf -dW "$lib" | grep STATIC_TLS | sed "s|^|$lib |"
done >"$tmp/against"
readelf -lW "$rec" | awk '$1 == "TLS" && $6 !~ /^0x0000([0-3].|40)$/ {print "the recorder: " $6}' >>"$tmp/against"
claim "libraries of ours take no static thread-local storage, and the recorder at most 64 bytes"

# checks of the sources alone, each with violations that it must see (tests/tree/check.py)
source_claim() { # source_claim CHECK NAME
	python3 tools/check_source.py "$1" >"$tmp/against" 2>&1
	claim "$2"
}
source_claim layers "no include goes against the parts of ARCHITECTURE.md, and no input knows another"
source_claim writers "writers read the case and never set it"
source_claim values "a case is a finished value: nothing in it calls back, and a verdict changes no text"
source_claim columns "no line of C is longer than 160 columns, comments included"
source_claim signals "signals to other processes go through base/children.c alone"
source_claim formatter "nobody turns clang-format off"
source_claim offsets "where CPython keeps things stands in kb/python_layouts.def alone"
source_claim causes "every cause has a program that triggers it"
python3 tests/tree/check.py "$build" >"$tmp/against" 2>&1 && : >"$tmp/against"
claim "these checks see what is planted in a copy of the tree"

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

grep -rnE 'TODO|FIXME|XXX|HACK' src include kb tools Makefile | grep -v 'tools/check_tree.sh' | grep -v XXXXXX >"$tmp/against"
claim "nothing in the product is marked unfinished"

grep -nE '"resolved"|https?://' web/package-lock.json web/package.json web/.npmrc >"$tmp/against"
claim "the packages of the report page are named without addresses"

awk 'length > 120 {print FILENAME ":" FNR ": " length " columns"}' web/src/*.js >"$tmp/against"
claim "no line of JavaScript is longer than 120 columns"

python3 tools/check_docs.py "$build" >"$tmp/against" 2>&1
claim "every link, file, option, make target and variable that the documents name exists, and they avoid the words that voice.md lists"

python3 tools/check_programs.py "$build" >"$tmp/against" 2>&1
claim "every program that a cause shows is run on a GPU, expects that cause, stands alone, is small and compiles"

python3 tools/render_causes.py --check "$build" >"$tmp/against" 2>&1
claim "docs/causes is what kb/causes says"

python3 tools/collect.py check >"$tmp/against" 2>&1
claim "every labeled report is complete, has neutral names, and is in nobody else's words"

echo "tree: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
