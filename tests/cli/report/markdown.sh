# SPDX-License-Identifier: Apache-2.0
# For an issue tracker: to standard output, without a page.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy report --markdown o | sed -e '/^| system /d' -e '/^| cuwhy /d' -e '/^  WITH/,/^  CONF/{/WITH/d;/^         /d}' | head -n 14
