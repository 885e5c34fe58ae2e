# SPDX-License-Identifier: Apache-2.0
# A file of somebody else gives no page.
echo hello > file
cuwhy report -o page.html file
status=$?
ls page.html 2>/dev/null
exit $status
