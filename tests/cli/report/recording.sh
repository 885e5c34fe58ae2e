# SPDX-License-Identifier: Apache-2.0
# The page of a recording: one file, with the verdict in it as data and as text.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy report o | sed "s/([0-9]* KiB)/(N KiB)/"
grep -c "launch-config-grid-limit" cuwhy-report.html
grep -c "Content-Security-Policy" cuwhy-report.html
! grep -iE "(src|href)=.?(http|//)" cuwhy-report.html
