#!/bin/bash
# A job of Slurm that is queued again.
[ "$1" = requeue ]
