# SPDX-License-Identifier: Apache-2.0
# A file that is nothing else is a text; one without any failure is fine.
echo hello > file
cuwhy explain file
