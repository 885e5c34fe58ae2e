# SPDX-License-Identifier: Apache-2.0
# A limit needs two things to compare.
cuwhy memory --max-growth 5% "$T"
