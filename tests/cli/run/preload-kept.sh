# SPDX-License-Identifier: Apache-2.0
# A preload of the user's own stays.
export ASAN_OPTIONS=verify_asan_link_order=0
LD_PRELOAD=libm.so.6 cuwhy run sh -c 'echo "$LD_PRELOAD" | grep -c "libcuwhy-rec.so:libm.so.6$"'
