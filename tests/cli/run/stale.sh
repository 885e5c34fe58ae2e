# SPDX-License-Identifier: Apache-2.0
# Folders that a killed cuwhy left behind go away once nothing uses them; what has a similar name stays.
cd "$XDG_RUNTIME_DIR" || exit 2
mkdir -m 700 cuwhy-old111 cuwhy-output && echo mine > cuwhy-output/.cuwhy
touch -d '1 year ago' cuwhy-old111 cuwhy-output
cuwhy run sleep 600 2>/dev/null &
until [ -n "$(find . -name s)" ]; do :; done
program() { grep -lz "CUWHY_SOCK=$PWD" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
until [ -n "$(program)" ]; do :; done
kill -STOP $!	# all of cuwhy is killed at once, so that none of it can clean up
children() { grep -lE "^PPid:[[:space:]]$!\$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3; }
until [ "$(for p in $(children); do cat "/proc/$p/comm"; done | sort | tr '\n' ' ')" = "cuwhy-keeper cuwhy-witness sleep " ]; do :; done
for p in $(children); do
	grep -q '^cuwhy-' "/proc/$p/comm" && kill -9 "$p"
done
kill -9 $!
wait $! 2>/dev/null
cuwhy run true
echo "in use: $(find . -name s | wc -l)"
kill $(program)
while [ -n "$(program)" ]; do :; done
cuwhy run true
ls
