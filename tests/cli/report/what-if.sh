# SPDX-License-Identifier: Apache-2.0
# What-ifs need the memory of a recording.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy report --what-if expandable_segments -o page.html o
echo "exit $?"
echo '{"cuwhy_bundle": 1}' >bundle.json
cuwhy report --what-if expandable_segments -o page.html bundle.json
echo "exit $?"
ls
