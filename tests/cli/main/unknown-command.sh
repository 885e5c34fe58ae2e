# SPDX-License-Identifier: Apache-2.0
# An unknown command offers the nearest one.
cuwhy explian
