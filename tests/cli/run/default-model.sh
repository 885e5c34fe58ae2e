# SPDX-License-Identifier: Apache-2.0
# --gpu sim without a model uses the default one.
cuwhy run --json --gpu sim gpu grid 1 2>&1 | grep -o '"cause":"[a-z-]*"' | head -1
