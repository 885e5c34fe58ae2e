#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The files of a small Debian 12 for aarch64: libraries to link with, and a Python to run. root.sh FOLDER. Nothing in it is run here, so
# no emulation is needed; debootstrap only downloads. As root, with network; once.
set -eu
folder=$1
packages=python3,libc6-dev,libjansson-dev,libiberty-dev,zlib1g-dev,libzstd-dev,liblzma-dev

[ ! -f "$folder/complete" ] || exit 0
rm -rf "$folder" "$folder.download"
mkdir -p "$folder"
debootstrap --arch=arm64 --variant=minbase --download-only --include="$packages" bookworm "$folder.download" >"$folder.log" 2>&1 || {
	tail -n 5 "$folder.log" >&2
	exit 2
}
for package in "$folder.download"/var/cache/apt/archives/*.deb; do
	dpkg -x "$package" "$folder"
done
# links of a system's own, which lead elsewhere from outside
find "$folder/usr/lib" -lname '/*' | while read -r link; do
	ln -srfn "$folder$(readlink "$link")" "$link"
done
rm -rf "$folder.download" "$folder.log"
touch "$folder/complete"
