#!/bin/bash
# dev_test.sh DEV: the script at the root knows every command that its help names, and refuses what it does not know.
set -euo pipefail
dev=$1
cd "${TMPDIR:-/tmp}"  # it must not matter where it is called from
wrong() { echo "WRONG: $*"; exit 1; }

bash -n "$dev"
[ -x "$dev" ] || wrong "dev cannot be executed"
help=$("$dev" help)
[ "$("$dev")" = "$help" ] || wrong "dev alone does not print its help"
for command in quickstart build test asan tsan clang fuzz lint format bench bench-peers accelerator accelerator-check accelerator-runs test-families test-random package wheel docs help; do
  grep -q "^\./dev $command " <<<"$help" || wrong "the help does not name $command"
  grep -q "^dev_$command() " "$dev" || wrong "dev $command is not there"
done
if "$dev" no-such-command 2>said.$$ >&2; then wrong "an unknown command succeeds"; fi
grep -q "no such command: no-such-command" said.$$ || wrong "an unknown command is not named"
rm -f said.$$
"$dev" bench --help | grep -q "^\./dev bench TABLE " || wrong "dev bench --help does not list the tables"

# What `bench` starts is there, and known to its help and its page.
root=$(dirname "$dev")
started=$(sed -n 's/.*=~ ^(\([a-z|]*minimalloc\)).*/\1/p' "$dev" | tr '|' ' ')
[ "$(wc -w <<<"$started")" -ge 5 ] || wrong "the scripts that dev bench starts are not found"
for script in $started decode translate; do
  [ -e "$root/bench/$script.py" ] || wrong "bench/$script.py is not there"
  grep -q "^\./dev bench $script " <<<"$help" || wrong "the help does not name ./dev bench $script"
  grep -q "^\./dev bench $script " "$root/docs/internals/benchmarks.md" || wrong "no line of benchmarks.md shows ./dev bench $script"
done

# --no-install names what is missing, installs nothing and goes on; its place among the words does not matter.
mkdir -p bin.$$
for tool in cmake ninja ctest apt-get sudo; do printf '#!/bin/sh\necho "%s $*" >>"$SAID"\n' $tool >bin.$$/$tool; done
printf '#!/bin/sh\n[ "$4" = ccache ] || echo installed\n' >bin.$$/dpkg-query
chmod +x bin.$$/*
copy=$PWD/copy.$$
mkdir -p "$copy"
cp "$dev" "$copy/dev"
for words in "--no-install build" "build --no-install"; do
  : >said.$$
  SAID=$PWD/said.$$ PATH=$PWD/bin.$$:$PATH "$copy/dev" $words 2>told.$$ || wrong "dev $words fails: $(cat told.$$)"
  grep -q "not installed, because of --no-install: ccache" told.$$ || wrong "dev $words does not name what is missing"
  ! grep -q "apt-get\|sudo" said.$$ || wrong "dev $words installs"
  grep -q "ninja .*tessera rapidformer examples" said.$$ || wrong "dev $words does not build"
done

# quickstart compiles kernels for this machine alone, unless all are there or were asked for; everybody else compiles all.
presets() { # COMMAND
  : >said.$$
  mkdir -p "$copy/build"
  printf '#!/bin/sh\n' >"$copy/build/tessera"
  chmod +x "$copy/build/tessera"
  SAID=$PWD/said.$$ PATH=$PWD/bin.$$:$PATH "$copy/dev" --no-install "$1" >/dev/null 2>told.$$ || wrong "dev $1 fails: $(cat told.$$)" >&2
  sed -n 's/^cmake --preset //p' said.$$
}
rm -rf "$copy/build"
[ "$(presets quickstart)" = quickstart ] || wrong "quickstart from nothing compiles all"
home="CMAKE_HOME_DIRECTORY:INTERNAL=$copy"
printf '%s\n' "$home" TESSERA_ISA:STRING=native >"$copy/build/CMakeCache.txt"
[ "$(presets quickstart)" = quickstart ] || wrong "a second quickstart compiles more than the first"
[ "$(presets build)" = release ] || wrong "dev build does not compile all"
printf '%s\n' "$home" TESSERA_ISA:STRING=all >"$copy/build/CMakeCache.txt"
[ "$(presets quickstart)" = release ] || wrong "quickstart after build compiles kernels again"
rm -rf "$copy/build"

# Without a GPU, `bench gpu` is refused before anything is built.
mkdir -p "$copy/bench"
cp "$(dirname "$dev")/bench/tables.sh" "$copy/bench"
printf '#!/bin/sh\nexit 9\n' >bin.$$/nvidia-smi
chmod +x bin.$$/nvidia-smi
: >said.$$
code=0
SAID=$PWD/said.$$ PATH=$PWD/bin.$$:$PATH "$copy/dev" bench gpu 2>told.$$ || code=$?
[ "$code" = 2 ] || wrong "dev bench gpu without a GPU ends with $code: $(cat told.$$)"
[ "$(wc -l <told.$$)" = 1 ] && grep -q "lacks a GPU .*; its plugin (./dev accelerator cuda13 --runtime); .*doctor" told.$$ ||
  wrong "dev bench gpu does not say in one line what is missing: $(cat told.$$)"
[ ! -s said.$$ ] || wrong "dev bench gpu without a GPU builds: $(cat said.$$)"

# `test ROOM` builds that room's tests and runs them alone; words that are no room are refused before anything is built.
cp "$(dirname "$dev")/CMakeLists.txt" "$copy"
: >said.$$
SAID=$PWD/said.$$ PATH=$PWD/bin.$$:$PATH "$copy/dev" test ops -R Softmax 2>told.$$ || wrong "dev test ops: $(cat told.$$)"
grep -q "^ninja -C build/edit .* tests_of_ops$" said.$$ || wrong "dev test ops does not build the room's tests alone"
grep -q "^ctest --test-dir build/edit .*-L ^ops\$ -R Softmax$" said.$$ || wrong "dev test ops does not run them alone"
: >said.$$
if SAID=$PWD/said.$$ PATH=$PWD/bin.$$:$PATH "$copy/dev" test oops 2>told.$$; then wrong "dev tests a room that is not there"; fi
grep -q "no room oops to test; there are: base .*rapidformer" told.$$ || wrong "dev test oops: $(cat told.$$)"
[ ! -s said.$$ ] || wrong "dev test oops runs: $(cat said.$$)"
rm -rf said.$$ told.$$ bin.$$ "$copy"

# Every package of the list has its line in the docs, so that none slips in unweighed.
while read -r _ package _; do
  [ -z "$package" ] || grep -q "$package" "$(dirname "$dev")/docs/internals/dependencies.md" ||
    wrong "docs/internals/dependencies.md does not weigh $package"
done < <(sed -n '/^PACKAGES="/,/^"/p' "$dev" | grep -v '"')
