# SPDX-License-Identifier: Apache-2.0
# A bundle that is not there.
cuwhy doctor --json nowhere.json
