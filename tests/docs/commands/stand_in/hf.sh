#!/bin/bash
# Models that are not small stand-ins on the disk cannot be fetched.
[ $# = 2 ] && [ "$1" = download ] && [ -d "$HOME/.cache/huggingface/hub/models--${2//\//--}" ]
