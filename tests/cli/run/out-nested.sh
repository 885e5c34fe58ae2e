# SPDX-License-Identifier: Apache-2.0
# --out makes the folders above it.
cuwhy run --out a/b/c true
ls a/b/c
