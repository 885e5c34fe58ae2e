# SPDX-License-Identifier: Apache-2.0
# --color takes three words.
cuwhy run --color=maybe true
