# SPDX-License-Identifier: Apache-2.0
# A folder without a recording.
mkdir d
cuwhy explain d
