#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the recorder's tables with the thread sanitizer and uses them from many threads.
#
#   tsan.sh [SANITIZER PROGRAM]	only builds the program, with that sanitizer
set -eu
out=${2:-build/tests/tsan_rings}
mkdir -p "$(dirname "$out")"
rec=src/recorder
${CC:-gcc} -std=gnu11 -O1 -g -fsanitize="${1:-thread}" -D_GNU_SOURCE -DCUWHY_VERSION='"tsan"' -Iinclude -Isrc -I. \
	-o "$out" tests/torture/tsan_rings.c $rec/rec_start.c $rec/rec_notice.c $rec/rec_env.c $rec/rec_lock.c $rec/rec_sandbox.c $rec/rec_elf.c $rec/rec_segment.c $rec/rec_driver_alloc.c $rec/rec_live.c \
	$rec/rec_torch_block.c $rec/rec_site.c $rec/rec_totals.c $rec/rec_timeline.c $rec/rec_epochs.c $rec/rec_events.c $rec/rec_event_log.c $rec/rec_ranges.c $rec/rec_fail.c $rec/rec_dump.c $rec/rec_dump_code.c $rec/rec_hang.c $rec/rec_function.c \
	$rec/rec_graph.c $rec/rec_launch.c $rec/rec_look.c $rec/rec_stock.c $rec/rec_reads.c -lpthread
[ $# -eq 0 ] || exit 0
if "$out"; then
	echo "tsan: 1 passed, 0 failed"
else
	echo "tsan: 0 passed, 1 failed"
	exit 1
fi
