# SPDX-License-Identifier: Apache-2.0
# A time that is none: nothing is started.
for t in 0 soon 5d -1 ''; do cuwhy run --hang-after "$t" touch started; echo "$?"; done
test ! -e started
