"""What the chart renders, as a list in JSON: render.py VALUES, of the release `shop` in the namespace `streams`."""

import json
import pathlib
import subprocess
import sys

import yaml

CHART = pathlib.Path(__file__).parent.parent / "partition-autoscaler"

command = ["helm", "template", "shop", str(CHART), "--namespace", "streams", "--values", sys.argv[1]]
rendered = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
if rendered.returncode != 0:
    sys.exit(rendered.returncode)  # helm has said why
json.dump([document for document in yaml.safe_load_all(rendered.stdout) if document], sys.stdout)
