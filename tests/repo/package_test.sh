#!/bin/bash
# package_test.sh BUILD: the Debian package has what it should, says what it depends on, and its command trains. It is not
# installed: that needs root.
set -euo pipefail
build=$1
command -v dpkg-shlibdeps >/dev/null || { echo "skipped: no dpkg-shlibdeps, of the package dpkg-dev"; exit 77; }
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
wrong() { echo "WRONG: $*"; exit 1; }
cmake -E make_directory "$build/reference_pages"
"$build/reference" "$build/reference_pages"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$t/out" >"$t/said" 2>&1 || { cat "$t/said"; wrong "cpack fails"; }
deb=$(echo "$t"/out/tessera_*.deb)
dpkg-deb --field "$deb" Depends | grep -q libdnnl || wrong "depends on $(dpkg-deb --field "$deb" Depends)"
dpkg-deb --extract "$deb" "$t/unpacked"
for file in bin/tessera bin/rapidformer include/tessera/tessera.h lib/cmake/tessera/tessera-config.cmake \
  share/man/man1/tessera-train.1 share/bash-completion/completions/tessera share/zsh/vendor-completions/_tessera \
  share/fish/vendor_completions.d/tessera.fish share/doc/tessera/LICENSE; do
  [ -e "$t/unpacked/usr/$file" ] || wrong "/usr/$file is not in it"
done
[ "$(find "$t/unpacked" -maxdepth 1 -mindepth 1)" = "$t/unpacked/usr" ] || wrong "it has files outside /usr: $(ls "$t/unpacked")"
for ((i = 0; i < 100; i++)); do echo "the line $i of a text"; done >"$t/text.txt"
"$t/unpacked/usr/bin/tessera" train --preset gpt2-tiny --data "$t/text.txt" --steps 2 --threads 1 --output "$t/run" >"$t/said" 2>&1 ||
  { cat "$t/said"; wrong "its command does not train"; }
echo "the package holds"
