# SPDX-License-Identifier: Apache-2.0
# Bytes that are no text are not called fine.
head -c 20000 /bin/sh > file
cuwhy explain file
