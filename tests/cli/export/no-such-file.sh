# SPDX-License-Identifier: Apache-2.0
# A name that is not there.
cuwhy export --torch-snapshot -o x ./gone
