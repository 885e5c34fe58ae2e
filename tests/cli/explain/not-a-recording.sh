# SPDX-License-Identifier: Apache-2.0
# A file that is something else.
echo hello > file
cuwhy explain file
