# SPDX-License-Identifier: Apache-2.0
# The newest ten recordings are kept; other files stay.
mkdir -p "$HOME/.local/state/cuwhy/20000101-000000-1" "$HOME/.local/state/cuwhy/mine"
i=0
while [ $i -lt 12 ]; do
	cuwhy run --gpu sim:tiny gpu grid 1 2>/dev/null
	i=$((i + 1))
done
ls "$HOME/.local/state/cuwhy" | sed '/^2000/!s/^2.*/recording/' | sort | uniq -c | sed 's/^ *//'
