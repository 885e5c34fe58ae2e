# SPDX-License-Identifier: Apache-2.0
# An input that cannot be read is named; the others are judged. If they show nothing, that is not "nothing wrong".
echo 'RuntimeError: CUDA error: out of memory' > train.log
echo 'all is well' > well.log
gunzip -c "$BUILD/../tests/dump/real/trap.cudacore.gz" | head -c 3000 > cut.cudacore
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
for f in o/*.cwr; do echo garbage > "$f"; done
head -c 3000 cut.cudacore | tail -c 2900 > junk
for words in 'train.log cut.cudacore' 'o train.log' 'well.log cut.cudacore' 'o cut.cudacore' 'well.log junk'; do
	echo "$words"
	# shellcheck disable=SC2086
	cuwhy explain $words 2>err | head -n 1
	# shellcheck disable=SC2086
	cuwhy explain --json $words >json 2>/dev/null
	echo "status $?: $(grep -o '"text":"skipped: [^"]*"' json)" | sed 's/[0-9][0-9]*-1/N-1/'
	sed 's/[0-9][0-9]*-1/N-1/' err
done
