# SPDX-License-Identifier: Apache-2.0
# A word that --version does not know.
cuwhy --version --jsno
