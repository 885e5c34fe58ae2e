# SPDX-License-Identifier: Apache-2.0
# Standard input is passed on as it is, the answer is on stderr; --quiet and --json leave the answer alone on stdout.
printf 'step 1\nRuntimeError: CUDA error: misaligned address\n' > log
cuwhy explain - < log 2> err | cmp - log
grep -c 'a kernel accessed a misaligned address' err
cuwhy explain --quiet - < log 2>&1 >/dev/null
cuwhy explain - --quiet < log | grep -c 'misaligned'
cuwhy explain --json - < log | grep -o '^{"schema":1,"cause":"[a-z-]*"'
cuwhy explain - < log > /dev/null 2>&1
