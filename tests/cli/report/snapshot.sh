# SPDX-License-Identifier: Apache-2.0
# A memory snapshot.
[ -s "$BUILD/report.html" ] || { echo "built without the page"; exit 77; }
cuwhy report -o page.html "$BUILD/../tests/fuzz/corpus/snapshot/growth" >/dev/null && grep -o "\"cause\":\"oom-[a-z-]*\"" page.html | head -1
