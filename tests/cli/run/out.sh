# SPDX-License-Identifier: Apache-2.0
# --out leaves a recording and a verdict also when nothing happened.
cuwhy run --out o true
ls o
grep -c '"cause": *"none"' o/verdict.json
