#!/usr/bin/env bash
# Makes a virtual environment with PyTorch, transformers and JAX for the benchmarks beside them.
#
#   bench/peers/setup.sh [FOLDER]        FOLDER defaults to build/peers
#
# TORCH names a version, as in TORCH='torch==2.15.0'.
#
# With an NVIDIA GPU, JAX's plugin for it comes too.
#
# Where packages come from, and any mirror of them, is pip's own configuration. Needs python3 with venv, and a few
# GiB of disk: the default torch for Linux brings its GPU libraries along.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:-build/peers}
torch=${TORCH:-torch}

if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  echo "setup.sh: python3 with venv is missing; on Debian: apt-get install python3-venv" >&2
  exit 1
fi
jax=jax needs='torch, jax, transformers'
if nvidia-smi -L >/dev/null 2>&1; then jax='jax[cuda13]' needs+=', jax_cuda13_plugin'; fi
if "$folder/bin/python" -c "import $needs" 2>/dev/null && [ "$torch" = torch ]; then
  echo "setup.sh: $folder has them already; remove the folder to install the newest"
else
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$torch" "$jax" numpy transformers
fi
"$folder/bin/python" -c 'import torch, jax; print("torch", torch.__version__, "jax", jax.__version__)'
