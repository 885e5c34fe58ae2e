#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The knowledge base as linked into the program: make_kb.sh kb/signs/*.kb kb/causes/*.md. Every file unchanged, after a line
# "%%% <id>" (signs: "%%% signs/<file>"); after a cause, a section "Program" with the program that its header names.
set -eu
for file; do
	case $file in
	*/signs/*)
		printf '\n%%%%%% signs/%s\n' "$(basename "$file")"
		cat "$file"
		continue
		;;
	esac
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
