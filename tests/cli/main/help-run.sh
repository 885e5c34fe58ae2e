# SPDX-License-Identifier: Apache-2.0
# 'cuwhy help run' and 'cuwhy run -h' are the same.
cuwhy run -h > a && cuwhy help run > b && cuwhy run --help > c && cmp a b && cmp a c && cat a
