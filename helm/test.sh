#!/usr/bin/env bash
# Tests of the chart, its alerts and its dashboard; without a cluster. Needs promtool, and what helm/tools.sh needs.
#
#   helm/test.sh [PROGRAM]
#
# PROGRAM is the built partition-autoscaler, which checks the rendered configuration; default target/debug/partition-autoscaler.
# UPDATE_EXPECT=1 writes the generated part of values.schema.json anew.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$(dirname "$here")/target/debug/partition-autoscaler}")
command -v promtool >/dev/null || { echo "promtool is missing: apt-get install -y prometheus" >&2; exit 1; }
exec "$here/tools.sh" python -B "$here/test/check.py" "$program"
