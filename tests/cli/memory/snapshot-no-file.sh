# SPDX-License-Identifier: Apache-2.0
# A file that is not there.
cuwhy memory nothing.pickle
