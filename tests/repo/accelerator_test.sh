#!/bin/bash
# accelerator_test.sh SCRIPT: tools/accelerator.sh with a pip of our own: what it asks for, what it keeps, what it says.
set -euo pipefail
script=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wrong() { echo "WRONG: $*"; cat "$scratch/said"; exit 1; }
mkdir -p "$scratch/tree/tools" "$scratch/bin"
cp "$script" "$scratch/tree/tools/accelerator.sh"

# A python3 whose pip makes a wheel of the package that it is asked for, or fails; zipfile copies what is in it.
cat >"$scratch/bin/python3" <<'END'
#!/bin/bash
set -euo pipefail
echo "$*" >>"$ASKED"
case "$*" in
  "-m pip --version") exit "${NO_PIP:-0}" ;;
  "-m venv"*) exit 1 ;;
  "-m pip download"*)
    [ -z "${NO_NETWORK-}" ] || { echo "WARNING: Retrying"; echo "ERROR: No matching distribution found"; exit 1; }
    while [ $# -gt 0 ]; do
      [ "$1" != -r ] || cat "$2" >>"$ASKED"
      [ "$1" != -d ] || into=$2
      shift
    done
    mkdir -p "$into"
    touch "$into/one.whl" ;;
  "-m zipfile -e"*)
    mkdir -p "$5/plugins/include" "$5/plugins/empty" "$5/one.dist-info" "$5/nvidia/cu13/bin" "$5/nvidia/cu13/include"
    touch "$5/plugins/plugin.so" "$5/plugins/include/api.h" "$5/plugins/empty/__init__.py" "$5/one.dist-info/LICENSE.txt"
    touch "$5/nvidia/cu13/bin/ptxas" "$5/nvidia/cu13/include/cuda.h" ;;
  *jax_plugins*) [ -n "${INSTALLED-}" ] && echo "$INSTALLED" ;;
  *) exit 1 ;;
esac
END
chmod +x "$scratch/bin/python3"
export ASKED=$scratch/asked PATH=$scratch/bin:$PATH
bring() { : >"$ASKED"; bash "$scratch/tree/tools/accelerator.sh" "$@" >"$scratch/said" 2>&1; }
plugins=$scratch/tree/build/plugins
[ "$(uname -sm)" = "Linux x86_64" ] || exit 77

bring cpu || wrong "cpu cannot be brought"
grep -qE '^fastatomstruct-xla-cpu==[0-9.]+ --hash=sha256:[0-9a-f]{64}$' "$ASKED" || wrong "cpu is not pinned"
[ "$(cd "$plugins/cpu" && find . -type f ! -path '*/nvidia/*' | LC_ALL=C sort | xargs)" = \
  "./one.dist-info/LICENSE.txt ./pinned ./plugins/include/api.h ./plugins/plugin.so" ] || wrong "other files than needed"
grep -q "build/plugins/cpu/plugins/plugin.so" "$scratch/said" || wrong "the plugin's file is not said"
bring cpu || wrong "a second call fails"
! grep -q download "$ASKED" || wrong "what is there is fetched again"
bring cuda13 || wrong "cuda13 cannot be brought"
grep -q "driver 580 or later" "$scratch/said" || wrong "the driver is not said"
bring cuda13 --runtime || wrong "NVIDIA's libraries cannot be brought"
[ "$(grep -c '^nvidia-.*--hash=sha256:' "$ASKED")" = 14 ] || wrong "other libraries than 14"
[ -x "$plugins/cuda13/nvidia/cu13/bin/ptxas" ] || wrong "ptxas cannot be executed"
[ ! -e "$plugins/cuda13/nvidia/cu13/include" ] || wrong "headers are kept"

fails() { # WORDS ARG...
  local words=$1
  shift
  if bring "$@"; then wrong "accelerator $* succeeds"; fi
  grep -q "^accelerator: .*$words" "$scratch/said" || wrong "accelerator $* does not say: $words"
}
fails "which one" # no name
fails "no accelerator gpu; there are cpu, cpu-old, cuda13, rocm, tpu" gpu
fails "unknown flag --fast" cpu --fast
fails "one name at a time" cpu tpu
fails "runtime is for cuda13" cpu --runtime
NO_NETWORK=1 fails "pip cannot bring libtpu [0-9.]*: No matching distribution found; is there a network" tpu
rm -rf "$plugins/cuda13"
NO_NETWORK=1 fails "pip cannot bring jax-cuda13-pjrt" cuda13
mkdir -p "$scratch/python/jax_plugins/xla_cuda13" "$scratch/python/nvidia"
touch "$scratch/python/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
NO_NETWORK=1 INSTALLED=$scratch/python/jax_plugins/xla_cuda13 bring cuda13 || wrong "an installed plugin is not used"
[ -e "$plugins/cuda13/jax_plugins/xla_cuda13/xla_cuda_plugin.so" ] || wrong "an installed plugin is not linked"
[ -d "$plugins/cuda13/nvidia" ] || wrong "installed libraries are not linked"
NO_PIP=1 fails "apt-get install python3-venv" tpu
[ ! -e "$plugins/tpu" ] || wrong "a plugin that was not brought is there"
[ -z "$(find "$plugins" -maxdepth 1 -name '.*.??????')" ] || wrong "folders are left behind"
echo "fine"
