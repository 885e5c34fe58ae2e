# SPDX-License-Identifier: Apache-2.0
# --open starts a browser with the page, tries the next one if it fails, and says where the page is if there is none.
unset DISPLAY WAYLAND_DISPLAY
mkdir bin
cat >bin/browser <<'END'
#!/bin/sh
printf '%s\n' "$@" >opened
ulimit -S -d >limit
END
printf '#!/bin/sh\nexit 3\n' >bin/broken
printf '#!/bin/sh\nsleep 30 >/dev/null 2>&1\n' >bin/slow
cp bin/broken bin/xdg-open
chmod +x bin/*
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
report() {
	rm -f opened
	cuwhy report "$@" -o 'a page.html' o | sed 's/([0-9]* KiB)/(N KiB)/; s/"bytes":[0-9]*/"bytes":N/'
	cat opened 2>/dev/null
}
PATH=$PWD/bin:$PATH
ulimit -S -d >mine
BROWSER=browser report --open
cmp mine limit && echo "the browser may use as much memory as before"
echo "--- the second of two, with an option"
BROWSER="broken:browser --new %s -x" report --open
echo "--- as JSON"
BROWSER=browser report --open --json
echo "--- one that stays open is not waited for"
BROWSER=slow report --open
echo "--- none"
BROWSER="not there:broken" report --open
BROWSER=broken report --open --json
BROWSER=broken cuwhy report --open -o p.html o >/dev/null 2>&1
echo "exit $?"
echo "--- not a file"
cuwhy report --open --markdown o
cuwhy report --open -o - o
echo "exit $?"
