# SPDX-License-Identifier: Apache-2.0
# A man page for cuwhy and for every command: each option of -h is in it, exit statuses and variables are, and the tools
# that read man pages have nothing to say against them.
for c in "" $(cuwhy _document commands); do
	page=$BUILD/man/cuwhy${c:+-$c}.1
	[ -s "$page" ] || echo "no $page"
	for section in NAME SYNOPSIS DESCRIPTION OPTIONS "EXIT STATUS" ENVIRONMENT "SEE ALSO"; do
		grep -qx ".SH $section" "$page" || echo "no $section in $page"
	done
	for option in $(cuwhy $c --help | sed -n 's/^  \(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
		sed 's/\\-/-/g' "$page" | grep -qF -- "--$option" || echo "no --$option in $page"
	done
	if command -v groff >/dev/null; then
		groff -ww -man -Tascii "$page" 2>&1 >/dev/null
	fi
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -Wwarning "$page" | grep -v 'missing date'
	fi
done
grep -c CUWHY_DIR "$BUILD/man/cuwhy-run.1" | sed 's/^[1-9].*/CUWHY_DIR is there/'
grep -o '127 not found' "$BUILD/man/cuwhy-run.1"
