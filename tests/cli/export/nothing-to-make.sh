# SPDX-License-Identifier: Apache-2.0
# Without a word of what is wanted.
cuwhy export -o x
