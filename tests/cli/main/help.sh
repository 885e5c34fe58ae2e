# SPDX-License-Identifier: Apache-2.0
# Help goes to stdout, with a line for every command: its name, its arguments, what it does.
cuwhy --help >help
for c in $(cuwhy _document commands); do
	grep -qE "^  $c +\[?[^ ].* [a-z]" help || echo "no line for $c"
done
sed '/^  [a-z]/d' help
