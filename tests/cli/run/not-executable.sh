# SPDX-License-Identifier: Apache-2.0
# A file that is not executable: 126.
echo 'print(1)' > train.py
cuwhy run ./train.py
