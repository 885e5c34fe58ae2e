#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lays out the page's JavaScript, or checks it: prettier.sh --write|--check FILE... Needs Node.js, which building does not.
# Exits with 3 where prettier cannot be had.
set -eu
folder=build/web

command -v npm >/dev/null 2>&1 || exit 3
mkdir -p "$folder"
# a package that matches this lock file is reused, so that a second run needs no network
if ! cmp -s web/package-lock.json "$folder/node_modules/.cuwhy-lock"; then
	cp web/package.json web/package-lock.json web/.npmrc "$folder/"
	# npm by itself waits for minutes where there is no network
	(cd "$folder" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=2 --fetch-timeout=30000) >"$folder/npm.log" 2>&1 || exit 3
	cp web/package-lock.json "$folder/node_modules/.cuwhy-lock"
fi
node "$folder/node_modules/prettier/bin/prettier.cjs" --config web/package.json --log-level warn "$@"
