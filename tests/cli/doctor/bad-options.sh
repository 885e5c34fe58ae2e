# SPDX-License-Identifier: Apache-2.0
# Options that do not go together, and values that are none.
cuwhy doctor --timeout never
cuwhy doctor --pid x
cuwhy doctor --python nowhere
cuwhy doctor --python /bin/sh --pid 1
cuwhy doctor --bundle a b
