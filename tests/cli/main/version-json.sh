# SPDX-License-Identifier: Apache-2.0
# The same as JSON, one object.
cuwhy --version --json | python3 -c '
import json, sys
v = json.load(sys.stdin)
print(sorted(v))
print(v["schema"], v["parts"]["recorder"], v["machine"]["glibc"].split(".")[0], sorted(v["machine"]))'
