# SPDX-License-Identifier: Apache-2.0
# A cause or a file of signs that is deleted leaves the build, and one that comes joins it; nothing else makes it anew.
unset MAKEFLAGS MFLAGS SAN B	# of the make that runs us, perhaps for another build folder
root=$BUILD/..
mkdir -p tests
cp -r "$root/Makefile" "$root/VERSION" "$root/kb" "$root/tools" "$root/src" . && cp -r "$root/tests/gpu" tests/
blob() {
	env -u MAKEFLAGS -u MAKELEVEL make -s build/kb.text >/dev/null && grep -c '^%%% ' build/kb.text
}
parts() { # parts: how many of these three are in it
	grep -cE '^%%% (watchdog-tdr|new-cause|signs/nccl.kb)$' build/kb.text
}
before=$(blob)
parts
rm kb/causes/watchdog-tdr.md
[ "$(blob)" = $((before - 1)) ] && parts
printf -- '---\nid: new-cause\n---\n' >kb/causes/new-cause.md
[ "$(blob)" = "$before" ] && parts
rm kb/signs/nccl.kb
[ "$(blob)" = $((before - 1)) ] && parts
stamp=$(stat -c %y build/kb.text)
blob >/dev/null
[ "$(stat -c %y build/kb.text)" = "$stamp" ] && echo "not made again"
