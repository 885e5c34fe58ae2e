# SPDX-License-Identifier: Apache-2.0
# A file of another kind.
echo text > t
cuwhy memory t
