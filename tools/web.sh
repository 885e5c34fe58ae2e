#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bundles the report page: web.sh FOLDER PAGE. Its packages go into FOLDER, never into web/.
set -eu
folder=$1
page=$2
log=$folder/npm.log

mkdir -p "$folder"
cp web/package.json web/package-lock.json web/.npmrc "$folder/"
# what is there already and belongs to this lock file is used again, so that a rebuild needs no network
if ! cmp -s web/package-lock.json "$folder/node_modules/.cuwhy-lock"; then
	(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		echo "cuwhy: the packages of the report page could not be installed; 'make WEB=no' builds without it" >&2
		exit 1
	}
	cp web/package-lock.json "$folder/node_modules/.cuwhy-lock"
fi
NODE_MODULES=$(cd "$folder" && pwd)/node_modules node web/build.mjs "$page"
