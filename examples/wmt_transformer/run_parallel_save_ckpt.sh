#!/bin/bash
# Trains as run.sh does, and saves a checkpoint after every step, of which the last four are kept: in test/checkpoints,
# with one file for each rank.
#   bash run_parallel_save_ckpt.sh DATA RANKS [FLAG...]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" "${@:1:2}" --save_checkpoint_steps=1 --keep_checkpoint_max=4 "${@:3}"
