# SPDX-License-Identifier: Apache-2.0
# A file of another kind.
echo hello > x.cwr
cuwhy export --torch-snapshot -o x x.cwr
