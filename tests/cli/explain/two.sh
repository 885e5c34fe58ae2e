# SPDX-License-Identifier: Apache-2.0
# Two arguments are one too many.
cuwhy explain a b
