# SPDX-License-Identifier: Apache-2.0
# The completions are read by their shells, and bash completes commands, options, values, causes, files and programs.
command -v bash >/dev/null || { echo "no bash"; exit 77; }
bash -n "$BUILD/completions/cuwhy.bash"
if command -v zsh >/dev/null; then zsh -n "$BUILD/completions/_cuwhy"; fi
if command -v fish >/dev/null; then
	fish -n "$BUILD/completions/cuwhy.fish"
	for words in "export --ch:--chrome-trace" "doctor --color n:never" "explain oom-frag:oom-fragmentation" "he:" "mem:memory"; do
		got=$(fish -c "source $BUILD/completions/cuwhy.fish; complete -C 'cuwhy ${words%:*}'" | cut -f 1)
		[ "$got" = "${words#*:}" ] || echo "fish: ${words%:*} -> $got"
	done
fi
for c in $(cuwhy _document commands); do
	for option in $(cuwhy $c --help | sed -n 's/^  \(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
		for file in cuwhy.bash _cuwhy; do
			grep -q -- "--$option" "$BUILD/completions/$file" || echo "no --$option in $file"
		done
		grep -q -- "from $c' -l $option" "$BUILD/completions/cuwhy.fish" || echo "no --$option of $c in fish"
	done
done
mkdir folder
touch "my log.txt" folder/inside
cat >try.bash <<'B'
. "$BUILD/completions/cuwhy.bash"
try() {
	COMP_WORDS=(cuwhy "$@") COMP_CWORD=$#
	COMPREPLY=()
	_cuwhy 2>/dev/null
	echo "$* -> ${COMPREPLY[*]}"
}
try ex
try export --ch
try run --color ''
try doctor --color n
try memory --at ''
try report my
try report -o fol
try run --out f
try explain oom-frag
try run --gpu sim:ti
try run --keep --out folder python3 my
try help me
try --v
B
bash try.bash
