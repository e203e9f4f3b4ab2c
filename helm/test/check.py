"""The tests of helm/test.sh. Each function that starts with `test_` is one."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback

import kubernetes_validate
import yaml

import schema

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
CHART = HERE.parent / "partition-autoscaler"
VALUES = sorted((CHART / "ci").glob("*.yaml"))
MINIMAL = CHART / "ci" / "minimal.yaml"
# The oldest and the newest Kubernetes of the chart, and one on each side of native sidecars.
KUBERNETES = ["1.25", "1.28", "1.29", "1.36"]
PROGRAM = sys.argv[1]


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)


def succeed(*command, **more):
    done = run(*command, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def objects(text):
    return [document for document in yaml.safe_load_all(text) if document]


def render(*options, chart=CHART, kubernetes="1.36"):
    if chart == CHART and "--values" not in options:
        options = ["--values", MINIMAL, *options]
    return objects(succeed("helm", "template", "shop", chart, "--namespace", "streams", "--kube-version", kubernetes, *options))


def of_kind(rendered, kind):
    found = [item for item in rendered if item["kind"] == kind]
    assert len(found) == 1, f"expected one {kind}, found {len(found)}"
    return found[0]


def pod(rendered):
    return of_kind(rendered, "Deployment")["spec"]["template"]


def config(rendered):
    maps = [item for item in rendered if item["kind"] == "ConfigMap" and "config.toml" in item["data"]]
    assert len(maps) == 1
    return maps[0]["data"]


@contextlib.contextmanager
def consumer():
    """The chart of an application with this chart as a dependency."""
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(folder) / "test" / "consumer"
        shutil.copytree(HERE / "consumer", chart)
        shutil.copytree(CHART, pathlib.Path(folder) / "partition-autoscaler")
        succeed("helm", "dependency", "update", chart)
        yield chart


def check_config(rendered):
    """`config check` on the files as the pod would see them."""
    with tempfile.TemporaryDirectory() as folder:
        mount = pathlib.Path(folder)
        for name, text in config(rendered).items():
            (mount / name).write_text(text)
        (mount / "secrets").mkdir()
        (mount / "secret").write_text("secret\n")
        for volume in pod(rendered)["spec"]["volumes"]:
            for source in volume.get("projected", {}).get("sources", []):
                for item in source.get("secret", {}).get("items", []):
                    (mount / item["path"]).write_text("secret\n")
        for table in tables(config(rendered)["config.toml"]):
            file = table.get("topology", {}).get("file")
            if file and not (mount / file).exists():  # it comes from a ConfigMap that is not the chart's
                (mount / file).write_text("Sub-topology: 0\n Source: S (topics: [orders])\n  --> none\n")
        succeed(PROGRAM, "config", "check", "--config", mount / "config.toml", cwd=mount)


def refused(message, *options):
    done = run("helm", "template", "shop", CHART, *options)
    assert done.returncode != 0, f"{options} are accepted"
    assert message in done.stderr, f"{options}: expected {message!r} in\n{done.stderr}"


def test_the_schema_of_config_is_that_of_the_program():
    path = CHART / "values.schema.json"
    written = json.loads(path.read_text())
    wanted = schema.config(json.loads((ROOT / "docs" / "configuration.schema.json").read_text()))
    if os.environ.get("UPDATE_EXPECT"):
        written["properties"]["config"] = wanted
        path.write_text(json.dumps(written, indent=2) + "\n")
    assert written["properties"]["config"] == wanted, "values.schema.json differs; UPDATE_EXPECT=1 helm/test.sh writes it"


def test_lint():
    for values in VALUES:
        succeed("helm", "lint", "--strict", "--quiet", CHART, "--values", values)


def test_every_value_is_in_the_schema_and_every_key_in_the_full_example():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    properties = json.loads((CHART / "values.schema.json").read_text())["properties"]
    assert set(properties) - {"global"} == set(values)
    documented = set(re.findall(r"^### `([^`<]+)`$", (ROOT / "docs" / "configuration.md").read_text(), re.M))
    used = set()
    for file in VALUES:
        for table in tables(config(render("--values", file))["config.toml"]):
            used |= dotted(table)
    aliases = {name.replace("_", ".") for name in used}
    missing = {key for key in documented if not any(name == key or name.startswith(key + ".") for name in aliases | used)}
    assert not missing, f"no file in ci/ uses {sorted(missing)}"


def tables(text):
    document = tomllib.loads(text)
    applications = document.get("application")
    return [document, *applications] if isinstance(applications, list) else [document]


def dotted(table, prefix=""):
    names = set()
    for key, value in table.items():
        names |= dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key}
    return names


def test_what_is_rendered_is_valid_kubernetes():
    for values in VALUES:
        for version in KUBERNETES:
            validate(render("--values", values, kubernetes=version), version)


def validate(rendered, version):
    for item in rendered:
        if item["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # not part of Kubernetes; test_monitors looks at them
        kubernetes_validate.validate(item, version, strict=True)


def test_the_program_takes_the_configuration():
    for values in VALUES:
        check_config(render("--values", values))


def test_texts_of_topologies_arrive_as_they_are():
    texts = {file.name: file.read_text() for file in (ROOT / "tests" / "data" / "describe").glob("*.txt")}
    texts["indented.txt"] = "   Sub-topology: 0\n\n    Source: a\n"
    assert len(texts) > 1
    with tempfile.TemporaryDirectory() as folder:
        values = pathlib.Path(folder) / "values.yaml"
        values.write_text(yaml.safe_dump({"topology": {"files": texts}}))
        rendered = config(render("--values", MINIMAL, "--values", values))
    for name, text in texts.items():
        assert rendered[name].rstrip("\n") == text.rstrip("\n"), name


def test_the_program_needs_no_rights():
    rendered = render()
    kinds = {item["kind"] for item in rendered}
    assert {"Deployment", "ServiceAccount", "ConfigMap", "Service", "PodDisruptionBudget"} <= kinds
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    assert of_kind(rendered, "ServiceAccount")["automountServiceAccountToken"] is False
    spec = pod(rendered)["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert tomllib.loads(config(rendered)["config.toml"])["partition"]["autoscaling"]["enabled"] is False
    container = spec["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert "subPath" not in str(container["volumeMounts"])  # such a file would never change
    assert not container["image"].endswith(":latest")


def test_settings_that_count_at_once_never_restart_the_pod_and_others_do():
    keys = (ROOT / "docs" / "configuration.md").read_text().partition("\n## Keys\n")[2].split("\n### ")[1:]
    counts = {text.split("`")[1]: re.search(r"^\* A new value counts: (.*)$", text, re.M)[1].startswith("at once") for text in keys}
    assert counts["partition.autoscaling.enabled"] and not counts["expected.cluster.id"]
    full = yaml.safe_load((CHART / "ci" / "full.yaml").read_text())
    # As variables, so that each can be left out of `config`.
    required = [{"name": name, "value": "x"} for name in ("APPLICATION_ID", "BOOTSTRAP_SERVERS", "TOPOLOGY_URL")]
    tried = set()
    with tempfile.TemporaryDirectory() as folder:
        values = pathlib.Path(folder) / "values.yaml"

        def annotation(config):
            values.write_text(yaml.safe_dump({**full, "config": config, "extraEnv": required}))
            return pod(render("--values", values))["metadata"]["annotations"]["checksum/config"]

        before = annotation(full["config"])
        for path in paths(full["config"]):
            name = ".".join(path).replace("_", ".")
            key = max((key for key in counts if f"{name}.".startswith(f"{key.partition('.<')[0]}.")), key=len)
            assert (before == annotation(without(full["config"], path))) == counts[key], name
            tried.add(key)
    assert tried >= {key for key, at_once in counts.items() if at_once}


def paths(table, prefix=()):
    for name, value in table.items():
        yield from paths(value, (*prefix, name)) if isinstance(value, dict) else [(*prefix, name)]


def without(table, path):
    """A copy that lacks the setting, and what would be empty then."""
    name, *rest = path
    below = without(table[name], rest) if rest else None
    others = {other: value for other, value in table.items() if other != name}
    return {**others, name: below} if below else others


def test_what_restarts_the_pod_with_several_applications():
    def annotations(*settings, values=CHART / "ci" / "several-clusters.yaml"):
        options = [option for setting in settings for option in ("--set", setting)]
        return pod(render("--values", values, *options))["metadata"].get("annotations")

    before = annotations()
    assert before == annotations("config.partition.autoscaling.enabled=true", "config.log.level=debug")
    assert before == annotations("config.application[0].partition.autoscaling.enabled=false")
    assert before == annotations(r"config.application[1].baseline.invoices\.v2=4")
    assert before == annotations(r"topology.files.x\.txt=text")
    assert before != annotations("config.application[0].expected.cluster.id=MkU3OEVBNTcwNTJENDM2Qg")
    assert annotations("restartOnConfigChange=false") is None

    one = ["bootstrap.servers=b:9092", "topology.url=http://a/", "application.id=a", "max.new.partitions=9"]
    one = [f"config.application[0].{setting}" for setting in one]
    assert annotations(*one, values="/dev/null") == annotations(*one[:-1], values="/dev/null")


def test_secrets_are_only_named():
    rendered = render("--values", CHART / "ci" / "secrets.yaml")
    sources = pod(rendered)["spec"]["volumes"][0]["projected"]["sources"]
    assert {"secret": {"name": "shop-kafka", "items": [{"key": "password", "path": "secrets/password"}]}} in sources
    assert tomllib.loads(config(rendered)["config.toml"])["kafka"]["sasl.password.file"] == "secrets/password"
    assert not [item for item in rendered if item["kind"] == "Secret"]


def test_what_is_refused():
    refused("additional properties 'replicas' not allowed", "--set", "replicas=2")
    refused("additional properties 'enable' not allowed", "--set", "config.partition.autoscaling.enable=true")
    refused("replicaCount is 2 with config.leader.election=none", "--set", "config.leader.election=none")
    one_alone = ["--set", "config.application[0].application.id=a", "--set", "config.application[0].leader.election=none"]
    refused("replicaCount is 2 with config.leader.election=none", *one_alone)
    refused("use config.leader.election", "--set", "extraEnv[0].name=LEADER_ELECTION", "--set", "extraEnv[0].value=none")
    for name in ["sasl.password", "ssl.key.pem"]:
        escaped = name.replace(".", r"\.")
        refused("name it in secretFiles and set kafka." + name + ".file", "--set", f"config.kafka.{escaped}=x")
        refused(f"config.kafka.{name} is a secret", "--set", f"config.kafka.{name}=x")
        refused("name it in secretFiles", "--set", "config.application[0].application.id=a", "--set", f"config.application[0].kafka.{escaped}=x")
    refused("config.kafka.sasl.password.file is secrets/x", "--set", "config.kafka.sasl.password.file=secrets/x")
    refused("use valueFrom.secretKeyRef", "--set", "extraEnv[0].name=KAFKA_SASL_PASSWORD", "--set", "extraEnv[0].value=x")
    refused("config.topology.url holds a user or password", "--set", "config.topology.url=http://user:word@shop/")
    refused("not a key of topology.files", "--set", "config.topology.file=shop.txt")
    refused("use 0.0.0.0:9878", "--set", "config.http.listen=127.0.0.1:9878")
    refused("use 0.0.0.0:9878", "--set", "config.http.listen=0.0.0.0:0")
    refused("use config.http.listen", "--set", "extraEnv[0].name=HTTP_LISTEN", "--set", "extraEnv[0].value=0.0.0.0:80")
    refused("use the NetworkPolicy of its pod", "--set", "mode=sidecar", "--set", "networkPolicy.enabled=true")
    refused("use podMonitor", "--set", "mode=sidecar", "--set", "serviceMonitor.enabled=true")
    refused("use one of them", "--set", "podMonitor.enabled=true", "--set", "serviceMonitor.enabled=true")


def test_what_the_program_does_not_start_without():
    values = {"APPLICATION_ID": "shop", "BOOTSTRAP_SERVERS": "broker-1:9092", "TOPOLOGY_URL": "http://shop/"}
    least = {name: f"config.{name.lower().replace('_', '.')}" for name in values}
    as_config = lambda names: [option for name in names for option in ("--set", f"{least[name]}={values[name]}")]
    as_variables = lambda entries: ["--set-json", f"extraEnv={json.dumps(entries)}"]
    succeed("helm", "template", "shop", CHART, *as_config(least))
    succeed("helm", "template", "shop", CHART, *as_variables([{"name": name, "value": values[name]} for name in least]))
    for missing, key in least.items():
        others = as_config([name for name in least if name != missing])
        message = "config has no topology" if missing == "TOPOLOGY_URL" else f"{key} is not set"
        refused(message, *others)
        refused(message, "--set", "mode=sidecar", *others)
        refused(message, *others, *as_variables([{"name": missing, "value": ""}]))  # an empty variable counts as not set
        by_reference = {"name": missing, "valueFrom": {"secretKeyRef": {"name": "shop", "key": "value"}}}
        succeed("helm", "template", "shop", CHART, *others, *as_variables([by_reference]))
    several = ["--set", "config.application[0].application.id=a", "--set", "config.application[1].application.id=b"]
    first = "config.application[0]"
    refused(f"{first}.bootstrap.servers is not set", *several)
    of_first = ["--set", f"{first}.bootstrap.servers=b:9092", "--set", f"{first}.topology.subtopologies[0].id=0"]
    refused("config.application[1].bootstrap.servers is not set", *several, *of_first)
    refused("config.application[1] has no topology", *several, *of_first, *as_config(["BOOTSTRAP_SERVERS"]))
    succeed("helm", "template", "shop", CHART, *several, *of_first, *as_config(["BOOTSTRAP_SERVERS", "TOPOLOGY_URL"]))
    mount = "mountPath=/etc/partition-autoscaler/config.toml"  # a file of the user's in place of the one of the chart
    succeed("helm", "template", "shop", CHART, "--set", f"extraVolumeMounts[0].name=x,extraVolumeMounts[0].{mount}")


def test_two_pods_elect_a_leader():
    rendered = render()
    assert tomllib.loads(config(rendered)["config.toml"])["leader"]["election"] == "kafka"
    deployment = of_kind(rendered, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    budget = of_kind(rendered, "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert "unhealthyPodEvictionPolicy" not in of_kind(render(kubernetes="1.25"), "PodDisruptionBudget")["spec"]
    spread = deployment["template"]["spec"]["topologySpreadConstraints"]
    assert [(one["topologyKey"], one["whenUnsatisfiable"]) for one in spread] == [("kubernetes.io/hostname", "ScheduleAnyway")]
    assert spread[0]["labelSelector"] == budget["selector"]


def test_one_pod_without_an_election():
    for election in ["none", "kafka"]:
        rendered = render("--set", "replicaCount=1", "--set", f"config.leader.election={election}")
        deployment = of_kind(rendered, "Deployment")["spec"]
        assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
        assert "PodDisruptionBudget" not in {item["kind"] for item in rendered}


def test_sidecar_in_the_pod_of_an_application():
    with consumer() as chart:
        succeed("helm", "lint", "--strict", "--quiet", chart)
        for version, override, native in [
            ("1.28", None, False),
            ("1.29", None, True),
            ("1.36", None, True),
            ("1.36", "false", False),
            ("1.28", "true", True),
        ]:
            options = ["--set", f"partition-autoscaler.nativeSidecar={override}"] if override else []
            rendered = render(*options, chart=chart, kubernetes=version)
            validate(rendered, "1.36" if native else version)
            kinds = [item["kind"] for item in rendered]
            assert kinds.count("Deployment") == 1 and "Service" not in kinds and "Pod" not in kinds
            spec = pod(rendered)["spec"]
            inits = [container["name"] for container in spec.get("initContainers", [])]
            others = [container["name"] for container in spec["containers"]]
            assert (inits, others) == ((["partition-autoscaler"], ["shop"]) if native else ([], ["shop", "partition-autoscaler"]))
            sidecar = (spec["initContainers"] if native else spec["containers"])[-1]
            assert sidecar.get("restartPolicy") == ("Always" if native else None)
            assert "livenessProbe" in sidecar
            assert "readinessProbe" not in sidecar and "startupProbe" not in sidecar
            assert {mount["name"] for mount in sidecar["volumeMounts"]} <= {volume["name"] for volume in spec["volumes"]}
            monitor = of_kind(rendered, "PodMonitor")["spec"]
            assert monitor["selector"]["matchLabels"].items() <= pod(rendered)["metadata"]["labels"].items()
            assert monitor["podMetricsEndpoints"][0]["port"] in [port["name"] for port in sidecar["ports"]]
            check_config(rendered)


def test_network_policy():
    def policy(*options):
        rendered = render("--set", "networkPolicy.enabled=true", *options)
        spec = of_kind(rendered, "NetworkPolicy")["spec"]
        assert spec["podSelector"]["matchLabels"].items() <= pod(rendered)["metadata"]["labels"].items()
        assert [port["port"] for port in spec["ingress"][0]["ports"]] == ["autoscaler"]
        return spec, of_kind(rendered, "Pod")["metadata"]["labels"]

    spec, _ = policy()
    assert spec["policyTypes"] == ["Ingress"] and "from" not in spec["ingress"][0] and "egress" not in spec
    spec, of_test = policy("--values", CHART / "ci" / "full.yaml")
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"][0]["from"][0] == {"podSelector": {"matchLabels": of_test}}
    assert len(spec["ingress"][0]["from"]) == 2
    assert [{port["port"] for port in rule["ports"]} for rule in spec["egress"]] == [{53}, {9092}]


def test_monitors():
    rendered = render("--values", CHART / "ci" / "monitors.yaml")
    service = of_kind(rendered, "Service")
    monitor = of_kind(rendered, "ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    endpoint = monitor["spec"]["endpoints"][0]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert (endpoint["interval"], endpoint["scrapeTimeout"], endpoint["path"]) == ("15s", "5s", "/metrics")
    ports = {port["name"] for port in pod(rendered)["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert service["spec"]["selector"].items() <= pod(rendered)["metadata"]["labels"].items()
    monitor = of_kind(render("--set", "podMonitor.enabled=true"), "PodMonitor")
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] in ports

    rules = [rule for group in of_kind(rendered, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    names = {rule["alert"] for rule in rules}
    assert {rule["alert"] for rule in alerts()} - names == {"PartitionAutoscalerThrottled"}
    assert all(rule["annotations"]["runbook_url"].startswith("https://runbooks.example/partition-autoscaler#") for rule in rules)
    originals = {rule["alert"]: rule["expr"] for rule in alerts()}
    assert all(rule["expr"] == originals[rule["alert"]] for rule in rules)

    board = [item for item in rendered if item["metadata"]["name"].endswith("-dashboard")][0]
    assert board["metadata"]["namespace"] == "monitoring"
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert board["metadata"]["annotations"] == {"grafana_folder": "Kafka"}
    assert json.loads(board["data"]["partition-autoscaler.json"]) == dashboard()


def alerts():
    return [rule for group in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]


def dashboard():
    return json.loads((CHART / "files" / "dashboard.json").read_text())


def test_alerts():
    succeed("promtool", "check", "rules", CHART / "files" / "alerts.yaml")
    succeed("promtool", "test", "rules", HERE / "alerts.yaml")
    headings = {heading.lower() for heading in re.findall(r"^## (.+)$", (ROOT / "docs" / "runbook.md").read_text(), re.M)}
    tests = [test for group in yaml.safe_load((HERE / "alerts.yaml").read_text())["tests"] for test in group["alert_rule_test"]]
    for rule in alerts():
        name = rule["alert"]
        assert rule["for"] and rule["labels"]["severity"] in ("warning", "critical"), name
        assert rule["annotations"]["summary"] and rule["annotations"]["description"], name
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}", name
        assert name.lower() in headings, f"docs/runbook.md has no heading {name}"
        outcomes = {bool(test.get("exp_alerts")) for test in tests if test["alertname"] == name}
        assert outcomes == {True, False}, f"{name} needs a test in which it fires and one in which it is quiet"
    assert headings == {rule["alert"].lower() for rule in alerts()}
    properties = json.loads((CHART / "values.schema.json").read_text())["properties"]
    known = properties["prometheusRule"]["properties"]["disabled"]["items"]["enum"]
    assert known == [rule["alert"] for rule in alerts()], "names that prometheusRule.disabled takes, in values.schema.json"


def test_dashboard():
    board = dashboard()
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "application"]
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in panels:
        title = panel["title"]
        assert title and panel["description"].endswith("."), title
        assert panel["fieldConfig"]["defaults"]["unit"], title
        assert panel["datasource"]["uid"] == "${datasource}" and panel["targets"], title
        for target in panel["targets"]:
            expression = target["expr"]
            assert target["legendFormat"] and target["datasource"]["uid"] == "${datasource}", title
            assert '$application"' in expression or "build_info" in expression, f"{title}: not by application"
            for window in re.findall(r"\[([^\]]+)\]", expression):
                assert window in ("$__rate_interval", "$__range"), f"{title}: {window}"
    places = [panel["gridPos"] for panel in board["panels"]]
    for index, one in enumerate(places):
        assert one["x"] + one["w"] <= 24
        for other in places[index + 1 :]:
            apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            assert apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other)


def expressions():
    """Every PromQL expression of alerts and dashboard, with Grafana's variables filled in."""
    board = dashboard()
    found = [rule["expr"] for rule in alerts()]
    found += [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    found += [annotation["expr"] for annotation in board["annotations"]["list"]]
    found += re.findall(r"label_values\(([^,]+),", " ".join(variable.get("definition", "") for variable in board["templating"]["list"]))
    filled = {"$__rate_interval": "5m", "$__range": "1h", "$application": ".+"}
    for variable, value in filled.items():
        found = [expression.replace(variable, value) for expression in found]
    return found


def test_expressions_parse_and_use_metrics_that_exist():
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| ([^|]*) \|", (ROOT / "docs" / "metrics.md").read_text(), re.M)
    suffixes = {"histogram": ["_bucket", "_sum", "_count"]}
    labels = {name: set(re.findall(r"`([a-z_]+)`", listed)) for name, _, listed in rows}
    known = {name + suffix for name, kind, _ in rows for suffix in suffixes.get(kind, [""])}
    with tempfile.TemporaryDirectory() as folder:
        rules = [{"record": f"expression:{index}", "expr": expression} for index, expression in enumerate(expressions())]
        file = pathlib.Path(folder) / "rules.yaml"
        file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
        succeed("promtool", "check", "rules", file)
    texts = set(re.findall(r'"(\w+)"', (ROOT / "src" / "http" / "labels.rs").read_text()))
    used = set()
    for expression in expressions():
        for value in re.findall(r'\b(?:state|code|class|result|role|part|decision)\s*(?:=~|!=|=)\s*"([^"]*)"', expression):
            assert set(value.split("|")) <= texts, f"no such label value: {value}"
        names = set(re.findall(r"\b(?:kafka_streams|partition_autoscaler|process)_\w+", expression))
        assert names and names <= known, f"{sorted(names - known)} are not in docs/metrics.md: {expression}"
        used |= names
        for name, selectors in re.findall(r"\b(\w+)\{([^}]*)\}", expression):
            family = next(family for family in labels if name in (family, *(family + suffix for suffix in suffixes["histogram"])))
            selected = set(re.findall(r"(\w+)\s*(?:=~|!=|=|!~)\s*\"", selectors))
            assert selected <= labels[family], f"{name} has no {sorted(selected - labels[family])}"
    families = {name for name, kind, _ in rows if not {name + suffix for suffix in suffixes.get(kind, [""])} & used}
    # it is the current one under a name of its own; see its line in docs/metrics.md
    assert families <= {"kafka_streams_stream_subtopology_metrics_subtopology_parallelism"}, f"nothing shows {sorted(families)}"


def test_notes():
    def notes(*options):
        options = options if "--values" in options else ["--values", MINIMAL, *options]
        return succeed("helm", "install", "shop", CHART, "--dry-run=client", *options).partition("NOTES:")[2]

    assert "Autoscaling is OFF" in notes()
    full = notes("--values", CHART / "ci" / "full.yaml")
    assert "Autoscaling is ON" in full and "port-forward deployment/shop-autoscaler 9000" in full
    several = notes("--values", CHART / "ci" / "several-clusters.yaml")
    assert "ON for shop" in several and "OFF for billing" in several and '"leader": true' in several
    variable = notes("--set", "extraEnv[0].name=PARTITION_AUTOSCALING_ENABLED", "--set-string", "extraEnv[0].value=true")
    assert "Autoscaling is O" not in variable and "PARTITION_AUTOSCALING_ENABLED" in variable
    assert "One of its 2 pods leads" in notes() and "history --config" in notes() and "pod/LEADER" in notes()
    assert "leads" not in notes("--set", "replicaCount=1")
    sidecar = notes("--set", "mode=sidecar")
    assert "enableServiceLinks" in sidecar and "elect one that acts" in sidecar
    several = ["--values", CHART / "ci" / "several-clusters.yaml"]
    for options in [["--set", "config.leader.election=none"], [*several, "--set", "config.leader.election=none"]]:
        assert "run one replica" in notes("--set", "mode=sidecar", *options)


def test_version_is_that_of_the_program():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert succeed(PROGRAM, "--version").split()[-1] == chart["appVersion"]


def main():
    tests = {name.removeprefix("test_"): test for name, test in globals().items() if name.startswith("test_")}
    failed = []
    for name, test in tests.items():
        try:
            test()
        except Exception:
            failed.append(name)
            print(f"{name}: FAILED\n{traceback.format_exc()}")
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
