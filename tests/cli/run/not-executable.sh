# SPDX-License-Identifier: Apache-2.0
# A file that is not executable: 126. The hint names the Python that there is; here, both.
mkdir bin one && ln -s /bin/true bin/python && ln -s /bin/true bin/python3 && ln -s /bin/true one/python3
echo 'print(1)' > train.py
PATH=$PWD/one:$(dirname "$(command -v cuwhy)") cuwhy run ./train.py
PATH=$PWD/bin:$PATH cuwhy run ./train.py
