# SPDX-License-Identifier: Apache-2.0
# A bundle of the doctor as a page; JSON that is none is refused.
cat >bundle.json <<'END'
{"cuwhy_bundle": 1, "host": {"kernel": {"nvidia": false}, "container": {"kind": "none"}, "wsl": {"version": 0}, "gpu": [], "node": []},
 "variables": {}, "nvml": {"trouble": "no-library"}, "cuda": {"trouble": "no-library"}}
END
cuwhy report --json bundle.json | sed 's/"bytes":[0-9]*/"bytes":N/'
grep -o '"checks":\[{"id":"[a-z]*"' cuwhy-report.html
grep -o '^  FAIL  GPU' cuwhy-report.html
echo '{"schema": 1, "cause": "none"}' >other.json
cuwhy report -o other.html other.json
echo "exit $?"
echo '{' >broken.json
cuwhy report -o other.html broken.json
echo "exit $?"
ls
