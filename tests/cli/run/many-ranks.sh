# SPDX-License-Identifier: Apache-2.0
# Twelve processes make the same mistake: it is told once, named a few times, and the rest is counted.
echo 'for rank in 1 2 3 4 5 6 7 8 9 10 11 12; do gpu grid 7; done; true' >ranks.sh
cuwhy run --gpu sim:tiny sh ranks.sh 2>&1 | grep 'the same way' | sed 's/process [0-9]*/process N/' | uniq -c |
	sed 's/^ *//'
