# SPDX-License-Identifier: Apache-2.0
# The same as one line of JSON.
cuwhy run --json --gpu sim:tiny gpu grid 7
