# SPDX-License-Identifier: Apache-2.0
# More than one.
cuwhy export --torch-snapshot -o x a b
