# SPDX-License-Identifier: Apache-2.0
mkdir a b
cuwhy fit --sizes 8,x a b
