#!/bin/bash
# All packages are installed.
echo installed
