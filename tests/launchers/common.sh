# SPDX-License-Identifier: Apache-2.0
# For the scripts beside it: $cuwhy, $work (an empty folder, removed at the end), need, check_first.
root=$(cd "$(dirname "$0")/../.." && pwd)
cuwhy=$root/build/cuwhy
python=${PYTHON:-python3}
work=$(mktemp -d)
on_exit() { rm -rf "$work"; }
trap 'on_exit' EXIT
export NO_COLOR=1 CUWHY_WRITES_MODE=real CUWHY_DIR="$work/state"

# need COMMAND PACKAGE: skips the test where it is missing.
need() {
	command -v "$1" >/dev/null 2>&1 && return
	echo "skip - $(basename "$0"): no '$1'; on Debian: apt-get install $2"
	exit 77
}

# check_first FOLDER RANK HOW [WORDS]: what cuwhy explain must say.
check_first() {
	"$cuwhy" explain "$1" || true
	"$cuwhy" explain "$1" --json >"$work/answer.json" || true
	"$python" - "$work/answer.json" "$2" "$3" "${4:-}" <<'PY'
import json, sys
got = json.load(open(sys.argv[1], encoding="utf-8"))
first, how = [x["rank"] for x in got["first"]], got["how"]
ok = first == [int(sys.argv[2])] and how == sys.argv[3] and got["ordered"] and sys.argv[4] in json.dumps(got)
print("%s - %d processes, first %s (%s)" % ("ok" if ok else "not ok", len(got["ranks"]), first, how))
sys.exit(0 if ok else 1)
PY
}

# A PyTorch wheel without its CUDA libraries, which the simulated GPU stands in for: `make check-torch` installs one.
need_torch() {
	for folder in "${CUWHY_TORCH:-}" "$HOME"/.cache/cuwhy/torch/*; do
		[ ! -d "$folder/torch" ] || PYTHONPATH=$folder
	done
	export PYTHONPATH
	[ -n "${PYTHONPATH:-}" ] && return
	echo "skip - $(basename "$0"): no PyTorch in ~/.cache/cuwhy/torch: make check-torch installs one"
	exit 77
}
