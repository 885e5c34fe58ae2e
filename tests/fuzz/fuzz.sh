#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes a reader with libFuzzer: fuzz.sh [SECONDS] [trace|replay|dump|run|snapshot|fatbin|code|pyenv|bundle|host|text|live|job]. Findings stay in build/fuzz.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
what=${2:-trace}
cc=${FUZZ_CC:-}
for c in clang clang-14 clang-15 clang-16; do
	[ -n "$cc" ] || ! command -v "$c" >/dev/null 2>&1 || cc=$c
done
if [ -z "$cc" ]; then
	echo "fuzzing needs clang: apt-get install clang-14" >&2
	exit 2
fi
out=build/fuzz
mkdir -p $out/new-$what
blobs="build/obj/src/knowledge/kb_blob.o build/obj/src/show/page_blob.o"
# shellcheck disable=SC2086
make --no-print-directory $blobs >/dev/null
flags="-std=gnu11 -O1 -g -D_GNU_SOURCE -DCUWHY_VERSION=\"$(cat VERSION)\" -Iinclude -Isrc -I. -include src/base/banned.h"
# the whole program except its commands and what runs in other processes
sources=$(find src -name '*.[cS]' ! -path 'src/cmd/*' ! -path 'src/run/*' ! -path 'src/fit/*' ! -path 'src/recorder/*' ! -path 'src/redirect/*' ! -path 'src/sim/*' ! -path 'src/portable/*' ! -path 'src/knowledge/compile/*' ! -name 'probe_main.c' ! -name '*_blob.S')
libs="-ljansson -liberty -lz -llzma -lzstd -ldl -lm"
if [ "$what" = code ]; then
	sources="$sources src/sim/cuda/sim_unpack.c"
fi
# shellcheck disable=SC2086
$cc $flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	tests/fuzz/fuzz_$what.c $sources $blobs -o $out/fuzz_$what $libs
exec $out/fuzz_$what -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
	-artifact_prefix=$out/ $out/new-$what tests/fuzz/corpus/$what
