#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows how far the build is: progress.sh STEP TOTAL WHAT FILE. On a terminal one line that is written over and over; elsewhere a line
# at each fifth of the way. TOTAL is empty if it is not known. progress.sh end clears the line.
step=$1 total=${2:-} what=${3:-} file=${4:-}

if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
	if [ "$step" = end ]; then
		printf '\r\033[K'
	else
		printf '\r\033[K%.79s' "[$step/${total:-?}] $what $file"
	fi
elif [ "$step" = end ]; then
	:
elif [ -n "$total" ]; then
	[ "$total" -lt 20 ] || [ $((step * 5 / total)) -eq $(((step - 1) * 5 / total)) ] || echo "building: $step of $total steps"
else
	printf '  %-5s %s\n' "$what" "$file"
fi
