# SPDX-License-Identifier: Apache-2.0
# An empty file beside others: it is named, not the healthy recording; what was judged is named in full.
cuwhy run --gpu sim:tiny --out o true 2>/dev/null
: > empty.txt
: > also.txt
echo 'all is well' > a.log
cuwhy explain o empty.txt
cuwhy explain empty.txt o a.log
cuwhy explain empty.txt also.txt
cuwhy explain empty.txt
