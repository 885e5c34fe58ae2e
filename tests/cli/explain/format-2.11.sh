# SPDX-License-Identifier: Apache-2.0
# Recordings that a cuwhy with format 2.11 wrote: what is read from them stays what it was.
for name in fault memory collectives words; do
	python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())' "$BUILD/../tests/golden/2.11-$name.cwr.xz" >$name.cwr
	cuwhy explain --json $name.cwr >$name.json
	python3 - $name.json <<'END'
import json, sys
v = json.load(open(sys.argv[1]))
print(sys.argv[1], v["cause"], *[(v.get(key) or {}).get(part) for key, part in (("error", "code"), ("where", "file"), ("where", "line"), ("where", "function"))])
ledger = ((v.get("memory") or {}).get("ledger") or {}).get("parts")
if v.get("fault"):
    print(v["fault"]["threads"], (v["fault"]["assert"] or {}).get("condition"), len(v["suspects"]))
if ledger:
    print(ledger)
END
	cuwhy report -o $name.html $name.cwr >/dev/null || echo "no page"
done
