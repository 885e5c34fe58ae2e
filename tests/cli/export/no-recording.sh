# SPDX-License-Identifier: Apache-2.0
# There is none yet.
cuwhy export --torch-snapshot -o x
