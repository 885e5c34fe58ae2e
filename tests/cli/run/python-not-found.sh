# SPDX-License-Identifier: Apache-2.0
# What newcomers type: a script without its interpreter, and `python` where there is only python3. The hint is what works.
mkdir bin
echo '#!/bin/sh' >bin/python3 && chmod +x bin/python3
echo 'print(1)' >train.py
export PATH="$T/bin:$BUILD"
for words in "train.py --lr 1" "./train.py" "python train.py" "no-such.py"; do
	cuwhy run $words
	echo $?
done
PATH=$BUILD cuwhy run python train.py
