# SPDX-License-Identifier: Apache-2.0
# What happens after a hang, without a time for one.
cuwhy run --hang-go-on true
