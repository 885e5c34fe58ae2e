# SPDX-License-Identifier: Apache-2.0
# A mistyped option offers the nearest one.
cuwhy run --jsno true
