# SPDX-License-Identifier: Apache-2.0
# What a simulated GPU does not understand is refused in one sentence before anything starts: no program, no folder.
for gpu in 'sim:h200*24' 'sim:h200*' sim:h200:memry=3 sim:h200,memry=3 sim:memry=3 sim:h200,memory=3X sim:h200,memory= sim:h200,nodevice=1 sim:values=nan \
	sim:fail=cuMemAlloc:0:2 sim:driver=9; do
	cuwhy run --gpu "$gpu" --out o echo started
	echo "$?, $(ls)"
done 2>&1 | sed 's/\(the models are tiny\) .*/\1 .../'
# and what it does understand runs
for gpu in sim 'sim:tiny*2' sim:memory=24G sim:,taken=1G 'sim:h200*8,memory=40G,fail=cuMemAlloc:3:2'; do
	cuwhy run --gpu "$gpu" echo started
done
