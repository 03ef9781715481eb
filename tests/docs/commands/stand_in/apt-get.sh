#!/bin/bash
# No network, and nothing to install.
exit 100
