# SPDX-License-Identifier: Apache-2.0
# No recording at all.
CUWHY_DIR=$T/none cuwhy report
