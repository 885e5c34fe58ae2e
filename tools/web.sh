#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bundles the report page: web.sh FOLDER PAGE. Its packages go into FOLDER, never into web/.
set -eu
folder=$1
page=$2
log=$folder/npm.log

mkdir -p "$folder"
cp web/package.json web/package-lock.json web/.npmrc "$folder/"
# packages that match this lock file are reused, so that a rebuild needs no network
if ! cmp -s web/package-lock.json "$folder/node_modules/.cuwhy-lock"; then
	(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		echo "cuwhy: cannot install the report page's packages; 'make WEB=no' builds without the page" >&2
		exit 1
	}
	cp web/package-lock.json "$folder/node_modules/.cuwhy-lock"
fi
NODE_MODULES=$(cd "$folder" && pwd)/node_modules node web/build.mjs "$page"
