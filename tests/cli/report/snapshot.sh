# SPDX-License-Identifier: Apache-2.0
# A memory snapshot.
cuwhy report -o page.html "$BUILD/../tests/fuzz/corpus/snapshot/growth" >/dev/null && grep -o "\"cause\":\"oom-[a-z-]*\"" page.html | head -1
