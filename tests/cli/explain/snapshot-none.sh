# SPDX-License-Identifier: Apache-2.0
# Nothing failed: says what is in it.
cuwhy explain "$BUILD/../tests/fuzz/corpus/snapshot/shape-1.13" | sed 's#in .*/tests#in tests#; s#memory .*/tests#memory tests#'
