#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The knowledge as it is linked into the program: make_kb.sh kb/causes/*.md. Every file as it is, after a line "%%% <id>";
# behind it a section "Program" with the text of the program that its header names.
set -eu
for file; do
	printf '\n%%%%%% %s\n' "$(basename "$file" .md)"
	cat "$file"
	program=$(sed -n '/^---$/,/^---$/s/^program: *//p' "$file")
	[ -n "$program" ] || continue
	if [ ! -f "$program" ]; then
		echo "$file: there is no program $program" >&2
		exit 1
	fi
	printf '\n## Program\n'
	sed -E -f tools/program_text.sed "$program" | sed 's/^./    &/'
done
