# SPDX-License-Identifier: Apache-2.0
# Two recordings of the same second: the one that was written later is the newest, whatever the numbers of their processes.
cuwhy run --gpu sim:tiny --out first gpu ordinal 1 2>/dev/null
cuwhy run --gpu sim:tiny --out second gpu grid 1 2>/dev/null
newest() {	# newest NAME-OF-FIRST NAME-OF-SECOND
	rm -rf state && mkdir state && cp -R first "state/$1" && cp -R second "state/$2"
	touch -d '2026-01-01 00:00:00.25' "state/$1/run.json"
	touch -d '2026-01-01 00:00:00.75' "state/$2/run.json"
	CUWHY_DIR=$T/state cuwhy explain --json | grep -o '"cause":"[a-z-]*"' | head -1
}
newest 20260101-000000-9999 20260101-000000-10000
newest 20260101-000000-10000 20260101-000000-9999
newest 20260101-000000-10000 20260101-000001-9
newest 20260101-000001-10000 20260101-000000-9
