#!/bin/bash
# Goes on from the newest checkpoint that run_parallel_save_ckpt.sh or run.sh has saved here, also on another number of
# ranks or with another --mp: with the same one the bits are those of a run that never stopped.
#   bash run_parallel_recover_ckpt.sh DATA RANKS [FLAG...]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" "${@:1:2}" --recover=true "${@:3}"
