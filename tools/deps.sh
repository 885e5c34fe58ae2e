#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Finds out which packages the build needs and does not have, and installs them (as root, on Debian and derivatives).
# `deps.sh browser` does the same for the report page's test, `deps.sh python` for the Python package's tests, `deps.sh format` for
# formatting C files. WEB=no builds without the page.
set -u

missing=
need_command() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need_header() {
	echo "#include <$1>" | ${CC:-gcc} -E -x c - >/dev/null 2>&1 || missing="$missing $2"
}

cc=${CC:-gcc}
need_command "${cc%% *}" gcc	# CC may be "ccache gcc"
need_command python3 python3
if command -v "${cc%% *}" >/dev/null 2>&1; then
	need_header stdio.h libc6-dev
	need_header jansson.h libjansson-dev
	need_header libiberty/demangle.h libiberty-dev
	need_header zlib.h zlib1g-dev
	need_header zstd.h libzstd-dev
	printf '#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n' |
		${CC:-gcc} -E -x c - >/dev/null 2>&1 || missing="$missing libcmocka-dev"
else
	missing="$missing libc6-dev libjansson-dev libiberty-dev zlib1g-dev libzstd-dev libcmocka-dev"
fi
if [ "${WEB:-yes}" != no ]; then
	need_command node nodejs
	need_command npm npm
fi
if [ "${1:-}" = browser ]; then
	need_command chromium chromium
	need_command chromedriver chromium-driver
fi
[ "${1:-}" = format ] && need_command clang-format-14 clang-format-14
# a Python other than the system's gets its modules elsewhere
if [ "${1:-}" = python ] && [ "$(command -v python3)" = /usr/bin/python3 ]; then
	python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
	python3 -c 'import pytest' 2>/dev/null || missing="$missing python3-pytest"
fi
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$missing"
	log=$(mktemp)
	if { apt-get update && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
		rm -f "$log"
		exit 0
	fi
	tail -n 20 "$log" >&2
	rm -f "$log"
	echo "cuwhy: cannot install these packages:$missing" >&2
	exit 2
fi
echo "cuwhy: some packages are needed to build. As root:" >&2
echo "    apt-get install$missing" >&2
exit 2
