# SPDX-License-Identifier: Apache-2.0
# The same as JSON.
echo hello > file
cuwhy explain --json file
