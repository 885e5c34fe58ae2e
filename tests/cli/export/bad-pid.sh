# SPDX-License-Identifier: Apache-2.0
# Not a number.
cuwhy export --torch-snapshot -o x --pid one .
