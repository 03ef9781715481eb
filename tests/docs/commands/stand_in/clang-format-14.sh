#!/bin/bash
# Formats nothing; the files must be there.
for word; do [[ $word == -* ]] || [ -f "$word" ] || exit 1; done
