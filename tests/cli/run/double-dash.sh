# SPDX-License-Identifier: Apache-2.0
# '--' ends the options.
cuwhy run --keep -- echo --keep
