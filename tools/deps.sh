#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Finds out which packages the build needs and does not have, and installs them (as root, on Debian and derivatives).
# `deps.sh unit` does the same for the unit tests, `browser` for the report page's, `python` for the Python package's, `aarch64` for
# those on another processor, `format` for formatting C files. With CHARTS=yes it also sees to pip, which fetches what draws the page's charts; else that is left out where there is no pip.
# DEPS=name only says what is missing.
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
	need_header lzma.h liblzma-dev
	need_header elfutils/libdwfl.h libdw-dev
else
	missing="$missing libc6-dev libjansson-dev libiberty-dev zlib1g-dev libzstd-dev liblzma-dev libdw-dev"
fi
if [ "${1:-}" = unit ]; then
	printf '#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n' |
		${CC:-gcc} -E -x c - >/dev/null 2>&1 || missing="$missing libcmocka-dev"
fi
if [ "${1:-}" = browser ]; then
	need_command chromium chromium
	need_command chromedriver chromium-driver
fi
if [ "${1:-}" = aarch64 ]; then
	need_command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	need_command qemu-aarch64-static qemu-user-static
	need_command debootstrap debootstrap
fi
[ "${1:-}" = newcomer ] && need_command debootstrap debootstrap
[ "${1:-}" = format ] && need_command clang-format-14 clang-format-14
# a Python other than the system's gets its modules elsewhere
if [ "${1:-}" = python ] && [ "$(command -v python3)" = /usr/bin/python3 ]; then
	python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
	python3 -c 'import pytest' 2>/dev/null || missing="$missing python3-pytest"
fi
# pip as a single wheel: it is three packages, pip itself is many
wheel_of_pip=
if [ "${CHARTS:-auto}" = yes ] && [ ! -f build/web/uPlot.iife.min.js ] && ! command -v npm >/dev/null 2>&1 &&
	! python3 -m pip --version >/dev/null 2>&1 && ! ls /usr/share/python-wheels/pip-*.whl >/dev/null 2>&1; then
	wheel_of_pip=python3-pip-whl
	missing="$missing $wheel_of_pip ca-certificates"
fi
[ -z "$missing" ] && exit 0

if [ "${DEPS:-install}" = install ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$missing"
	log=$(mktemp)
	# a network that stumbles, another apt at work: neither ends it at once
	apt() { DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1 </dev/null; }
	apt update
	# Debian 11 calls it by another name
	[ -z "$wheel_of_pip" ] || apt-cache show python3-pip-whl >/dev/null 2>&1 || missing=$(echo "$missing" | sed 's/python3-pip-whl/python-pip-whl/')
	for try in 1 2; do
		if apt install -y --no-install-recommends $missing; then
			rm -f "$log"
			exit 0
		fi
		[ $try = 2 ] || { sleep "${DEPS_PAUSE:-5}"; apt update; }
	done
	tail -n 20 "$log" >&2
	rm -f "$log"
	echo "cuwhy: cannot install these packages:$missing" >&2
	exit 2
fi
echo "cuwhy: some packages are needed to build. As root:" >&2
echo "    apt-get install$missing" >&2
exit 2
