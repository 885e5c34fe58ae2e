# SPDX-License-Identifier: Apache-2.0
# --out does not replace an older recording unasked.
cuwhy run --out o true
cuwhy run --out o echo ran
