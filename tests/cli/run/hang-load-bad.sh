# SPDX-License-Identifier: Apache-2.0
# The time that calls which load code have beyond --hang-after, without one, and none at all.
cuwhy run --hang-load 60s true
cuwhy run --hang-after 5s --hang-load soon true
