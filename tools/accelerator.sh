#!/bin/bash
# accelerator.sh NAME [--runtime]: brings the plugin of an accelerator from its wheel into build/plugins/NAME, where
# Tessera looks for it. Python is needed for that alone. Each wheel is pinned by version and hash.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# name, package, version, SHA-256 of the wheel for x86-64
PLUGINS="
cpu     fastatomstruct-xla-cpu 2026.6.23 88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9
cpu-old xla-cpu-pjrt           0.0.1     55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc
cuda13  jax-cuda13-pjrt        0.12.0.1  5899bb6177eda86ea532afb9a26794f2bdd04966f6a01f9028266b16c2b6cf90
rocm    jax-rocm7-pjrt         0.12.0    4551d0714523355f2946ca1958c3f584e95661e467a641d36b726f718a1c7934
tpu     libtpu                 0.0.52    f5e2e596eaea9357fbb5a6755a7a9007c6ab75bfde4a55191b03eff402971140
"
# What cuda13 needs to run, with --runtime.
RUNTIME="
nvidia-cublas       13.10.0.20 dcc6d63884c53d07e267ce7e6feac17b2538cebaafec5db865736c3e28e4dc84
nvidia-cuda-crt     13.5.37    e898b7f73d3035fa89915a3f7bf3b54a73e90249746111aed295822c4729bb29
nvidia-cuda-cupti   13.5.25    9dcca41c12a734192b14e7128ae116bc9ce1b9da686e2ebf48ae7a4415f76650
nvidia-cuda-nvcc    13.5.37    f5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7
nvidia-cuda-nvrtc   13.5.37    86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc
nvidia-cuda-runtime 13.5.37    df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d
nvidia-cudnn-cu13   9.28.1.4   a54f205b1db1f2895d99f398754db1369816f0569dd459731f925635cf7b65ec
nvidia-cufft        12.5.0.14  b8be26837a5abad2b5b74f3e92dd29f622a42934b355be0961a48712cbba23ad
nvidia-cusolver     12.4.1.2   b3b8e02fd2f2df869369af075dc3a179d43f6f7b85e94632a7dce556697be044
nvidia-cusparse     12.9.4.2   072667e58c851a318738f5527a12eb225cbf058803f2ea451c722d8cf8edddec
nvidia-nccl-cu13    2.32.3     1459723080ac889d73a26edfa3e04383a7928ab31ac8f0ec43b3ea9548b04ff3
nvidia-nvjitlink    13.5.37    280d7cb9649704145f074b8dbde500de04ce02d0872e066e20a83c17bcaa93eb
nvidia-nvshmem-cu13 3.8.0      81a4d1f666543e6d34df6d2ff940c7da1435e34e186aab6f3c2b48861b64ef38
nvidia-nvvm         13.5.37    c41bfa362e407405163f103c2229f0765f8cc2ed7d148b754dc77f228bf7e070
"

say() { printf -- '-- %s\n' "$*" >&2; }
stop() { printf 'accelerator: %s\n' "$*" >&2; exit 1; }

main() {
  local name="" runtime=no word
  for word; do
    case $word in
      --runtime) runtime=yes ;;
      -*) stop "unknown flag $word; usage: ./dev accelerator $(names '|') [--runtime]" ;;
      *) [ -z "$name" ] || stop "one name at a time: $(names ', ')"; name=$word ;;
    esac
  done
  [ -n "$name" ] || stop "which one? ./dev accelerator $(names '|') [--runtime]"
  read -r package version hash < <(awk -v name="$name" '$1 == name { print $2, $3, $4 }' <<<"$PLUGINS") ||
    stop "no accelerator $name; there are $(names ', ')"
  [ $runtime = no ] || [ "$name" = cuda13 ] || stop "--runtime is for cuda13; $name has all that it needs in one file"
  [ "$(uname -sm)" = "Linux x86_64" ] || stop "the pinned wheels are for Linux on x86-64, and this is $(uname -sm)"
  into=build/plugins/$name
  mkdir -p build/plugins
  scratch=$(mktemp -d "build/plugins/.$name.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  bring_plugin "$name"
  [ $runtime = no ] || bring_runtime
  say "$(find "$into/" -name '*.so' -not -path '*/nvidia/*' | head -1)"
  tell_needs "$name"
}

names() { awk -v between="$1" 'NF { printf "%s%s", sep, $1; sep = between }' <<<"$PLUGINS"; }

# The folder appears when it is complete. What a plugin does not need is left out; its licence stays.
bring_plugin() {
  local pinned="$package $version $hash"
  if [ "$(cat "$into/pinned" 2>/dev/null)" = "$pinned" ]; then
    say "$package $version is there"
    return
  fi
  local flags=()
  # Its wheels name a Python, which it does not need.
  [ "$1" != tpu ] || flags=(--python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_31_x86_64)
  fetch "$package" "$version" "$hash" ${flags[@]+"${flags[@]}"}
  find "$scratch/files" -type f ! -name '*.so' ! -name '*.h' ! -iname '*licen[cs]e*' ! -name METADATA -delete
  find "$scratch/files" -type d -empty -delete
  echo "$pinned" >"$scratch/files/pinned"
  [ ! -e "$into/nvidia" ] || mv "$into/nvidia" "$scratch/files/nvidia"
  rm -rf "$into"
  mv "$scratch/files" "$into"
}

# NVIDIA's libraries, in the folder beside the plugin where it looks for them: those of Python's packages on this machine,
# if all are there, else from their wheels.
bring_runtime() {
  local found package version hash
  if [ -e "$into/nvidia/complete" ] || [ -L "$into/nvidia" ]; then
    say "NVIDIA's libraries are there"
    return
  fi
  found=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
  if [ -n "$found" ] && [ -d "$found/cu13/lib" ] && [ -d "$found/cudnn/lib" ] && [ -d "$found/nccl/lib" ]; then
    ln -sfn "$found" "$into/nvidia"
    say "using NVIDIA's libraries in $found"
    return
  fi
  say "fetching NVIDIA's libraries: wheels of 2.4 GB in all, under NVIDIA's licences"
  while read -r package version hash; do
    [ -z "$package" ] || fetch "$package" "$version" "$hash"
  done <<<"$RUNTIME"
  find "$scratch/files" -type d -name include -prune -exec rm -rf {} +
  find "$scratch/files" -name '*.a' -delete
  find "$scratch/files/nvidia" -path '*/bin/*' -type f -exec chmod +x {} +
  touch "$scratch/files/nvidia/complete"
  rm -rf "$into/nvidia"
  mv "$scratch/files/nvidia" "$into/nvidia"
}

# fetch PACKAGE VERSION HASH [FLAG...]: its wheel, unpacked into $scratch/files.
fetch() {
  local package=$1 version=$2 hash=$3 log=build/plugins/pip.log wheel
  shift 3
  find_pip
  say "fetching $package $version"
  echo "$package==$version --hash=sha256:$hash" >"$scratch/wanted.txt"
  rm -rf "$scratch/wheels"
  "${PIP[@]}" download --quiet --no-input --disable-pip-version-check --no-deps --no-cache-dir --only-binary :all: \
    --retries 1 --timeout 30 --require-hashes -r "$scratch/wanted.txt" -d "$scratch/wheels" "$@" >"$log" 2>&1 ||
    stop "pip cannot bring $package $version: $(reason $log); is there a network with Python's packages? (log: $log)"
  for wheel in "$scratch"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$scratch/files"; done
  rm -rf "$scratch/wheels"
}

# The line of pip's log that says most.
reason() { grep -m1 'NewConnectionError\|ERROR: \|Errno' "$1" | sed 's/.*ERROR: //; s/.*NewConnectionError[^:]*: //; s/['\'')]*: \/simple.*//' | cut -c1-160 || true; }

# The system's pip, or one of a virtual environment.
find_pip() {
  [ -z "${PIP-}" ] || return 0
  command -v python3 >/dev/null || stop "no python3, with which wheels are fetched: apt-get install python3-venv"
  if python3 -m pip --version >/dev/null 2>&1; then
    PIP=(python3 -m pip)
  else
    python3 -m venv build/plugins/.pip >build/plugins/pip.log 2>&1 ||
      stop "python3 has no pip and cannot make an environment with one: apt-get install python3-venv"
    PIP=(build/plugins/.pip/bin/python -m pip)
  fi
}

tell_needs() {
  local driver
  case $1 in
    cpu | cpu-old) say "runs on every x86-64 processor" ;;
    cuda13)
      driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -1 || true)
      say "compiles without a GPU; to run it needs NVIDIA's driver 580 or later (here: ${driver:-none})"
      [ -e "$into/nvidia" ] || say "and NVIDIA's libraries (cuBLAS, cuDNN, NCCL, ...): ./dev accelerator cuda13 --runtime" ;;
    rocm) say "needs ROCm 7 with its libraries (RCCL, MIOpen, ...) and AMD's driver, else it cannot be loaded" ;;
    tpu) say "needs a machine with TPUs; used under the terms of Google Cloud Platform" ;;
  esac
}

main "$@"
