# SPDX-License-Identifier: Apache-2.0
cuwhy fit --help
