"""The part of values.schema.json that describes `config`: the schema of the configuration file, and no secrets."""

# What people most often try to write in plain. Other secrets are found by the rule in templates/_validate.tpl, nested ones as well.
SECRETS = [
    "sasl.jaas.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
]


def config(configuration):
    """From docs/configuration.schema.json. Helm prints the constant when a value differs from it, so it is the message."""
    return {key: value for key, value in refuse_secrets(configuration).items() if key not in ("$schema", "title")}


def refuse_secrets(node):
    if isinstance(node, list):
        return [refuse_secrets(item) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: refuse_secrets(value) for key, value in node.items()}
    if "kafka" in copy.get("properties", {}):
        copy["properties"]["kafka"]["properties"] = {
            name: {"const": f"a secret is not written in values: name it in secretFiles and set kafka.{name}.file"} for name in SECRETS
        }
    return copy
