# SPDX-License-Identifier: Apache-2.0
# CUWHY_DEBUG tells what the server sees.
CUWHY_DEBUG=server cuwhy run --gpu sim:tiny gpu ok 2>&1 | grep -c '^cuwhy.server.: process'
