# SPDX-License-Identifier: Apache-2.0
# --json on every command: its answer, and its own failure, are one JSON object and nothing else.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cat >object.py <<'P'
import json, sys
text = sys.stdin.read()
value = json.loads(text)
print(*sys.argv[1:], "failure" if "failure" in value else "answer" if value.get("schema") == 1 else "strange")
P
for c in $(cuwhy _document commands); do
	cuwhy "$c" --help | grep -q '^  --json' || echo "$c has no --json"
	cuwhy "$c" --json --no-such-option >out 2>err
	status=$?
	[ $status = 2 ] || echo "$c: exit $status"
	[ ! -s out ] || [ ! -s err ] || echo "$c: bytes beside the object"
	[ "$(cat out err | python3 object.py)" = failure ] || echo "$c: no failure"
done
echo '{"cuwhy_bundle": 1}' >bundle.json
answer() {
	name=$1
	shift
	"$@" 2>err | python3 object.py "$name"
	cat err
}
answer doctor cuwhy doctor --json bundle.json
answer explain cuwhy explain --json o
answer code cuwhy explain --json 700
answer cause cuwhy explain --json oom-fragmentation
answer list cuwhy explain --json --list
answer memory cuwhy memory --json o
answer export cuwhy export --json --chrome-trace -o trace.json o
cuwhy report --json o | python3 object.py >/dev/null
cuwhy run --json --gpu sim:tiny gpu grid 1 2>&1 | python3 object.py run
