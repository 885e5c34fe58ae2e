# SPDX-License-Identifier: Apache-2.0
# Folders that a killed cuwhy left behind go away; those in use stay.
cd "$XDG_RUNTIME_DIR" || exit 2
old=$PWD/cuwhy-old111 used=$PWD/cuwhy-used22 other=$PWD/cuwhy-else
mkdir -m 700 "$old" "$used" "$other"
touch -d '1 hour ago' "$old" "$used" "$other"
CUWHY_SOCK="$used/s" sleep 5 &
until grep -q CUWHY_SOCK "/proc/$!/environ"; do :; done	# its shell has it only once it has become sleep
cuwhy run true
kill $!
ls "$XDG_RUNTIME_DIR"
