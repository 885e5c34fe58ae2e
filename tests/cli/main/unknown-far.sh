# SPDX-License-Identifier: Apache-2.0
# Nothing near: no wild guess.
cuwhy frobnicate
