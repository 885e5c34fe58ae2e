# SPDX-License-Identifier: Apache-2.0
# A misspelled file beside another is an error that names it. Words without a file among them may be a message.
echo 'RuntimeError: CUDA error: out of memory' > train.log
for words in 'train.log no-such.cudacore' 'no/such.log train.log' '700 train.log' 'no.log no.cudacore'; do
	# shellcheck disable=SC2086
	cuwhy explain $words && exit 1
done
cuwhy explain CUDA error: out of memory | head -n 1
cuwhy explain --json train.log 'torch.OutOfMemoryError: CUDA out of memory.' | grep -o '"cause":"[a-z-]*"' | head -n 1
