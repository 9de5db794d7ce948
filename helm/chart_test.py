"""Tests of the chart: what it yields for values as people give them, and what it refuses.

Run by helm/check with the Python of scripts/tools, which has PyYAML and kubernetes-validate.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHART = ROOT / "helm" / "punctual"
# Kinds of other projects, which have no schema here.
FOREIGN_KINDS = {"ServiceMonitor"}
# The oldest and the newest release that the chart is checked against.
KUBERNETES_VERSIONS = ("1.27", "1.37")
NAME_MAX = 63


class Refused(Exception):
    """Helm's own words about values that it did not take."""


def helm_template(chart, values, release):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        # JSON is YAML without its guesses.
        file.write(values if isinstance(values, str) else json.dumps(values))
        file.flush()
        command = [ROOT / "scripts/helm", "template", release, chart, "--namespace", "timers", "--values", file.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Refused(result.stderr)
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def render(values="", release="prod", chart=CHART):
    """Returns the objects by kind, each checked against Kubernetes' own schemas."""
    objects = helm_template(chart, values, release)
    for document in objects:
        if document["kind"] not in FOREIGN_KINDS:
            for version in KUBERNETES_VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)
        for name in names(document):
            assert len(name) <= NAME_MAX, f"{document['kind']} has the name {name} of {len(name)} characters"
    return {document["kind"]: document for document in objects}


def names(document):
    yield document["metadata"]["name"]
    yield from document["metadata"]["labels"].values()
    if document["kind"] == "StatefulSet":
        yield document["spec"]["serviceName"]
        # What Kubernetes adds to the name for the label controller-revision-hash.
        yield document["metadata"]["name"] + "-" + "0" * 10


def container(objects):
    return objects["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]


def environment(objects):
    return {variable["name"]: variable for variable in container(objects)["env"]}


def config_text(objects):
    return objects["ConfigMap"]["data"]["punctual.yaml"]


class Objects(unittest.TestCase):
    def test_the_defaults_yield_what_is_needed(self):
        objects = render()
        expected = {"StatefulSet", "ConfigMap", "Service", "ServiceAccount", "PodDisruptionBudget"}
        self.assertEqual(set(objects), expected)
        spec = objects["StatefulSet"]["spec"]
        pod = spec["template"]["spec"]
        self.assertEqual(spec["replicas"], 3)
        self.assertEqual(pod["terminationGracePeriodSeconds"], 30)
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertTrue(container(objects)["securityContext"]["readOnlyRootFilesystem"])
        self.assertEqual(container(objects)["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertFalse(container(objects)["securityContext"]["allowPrivilegeEscalation"])
        self.assertEqual(spec["volumeClaimTemplates"][0]["metadata"]["name"], "state")
        self.assertEqual(objects["Service"]["spec"]["clusterIP"], "None")
        self.assertEqual(spec["serviceName"], objects["Service"]["metadata"]["name"])

    def test_probes_ask_the_admin_port(self):
        probes = container(render({"adminPort": 9999}))
        for probe, path in {"startupProbe": "/startupz", "livenessProbe": "/livez", "readinessProbe": "/readyz"}.items():
            self.assertEqual(probes[probe]["httpGet"], {"path": path, "port": "admin"})
        self.assertEqual(probes["ports"][0]["containerPort"], 9999)

    def test_the_instance_is_the_pod(self):
        variables = environment(render({"adminPort": 9999}))
        self.assertEqual(variables["PUNCTUAL__INSTANCE"]["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name")
        self.assertEqual(variables["PUNCTUAL__ADMIN__LISTEN"]["value"], "0.0.0.0:9999")
        self.assertNotIn("PUNCTUAL__KAFKA__PROPERTIES__SASL_PASSWORD", variables)

    def test_the_password_comes_from_a_secret(self):
        variables = environment(render({"saslPassword": {"existingSecret": "kafka", "key": "timers"}}))
        reference = variables["PUNCTUAL__KAFKA__PROPERTIES__SASL_PASSWORD"]["valueFrom"]["secretKeyRef"]
        self.assertEqual(reference, {"name": "kafka", "key": "timers"})

    def test_options_stay_valid(self):
        objects = render(
            {
                "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
                "podDisruptionBudget": {"maxUnavailable": "30%"},
                "image": {"digest": "sha256:" + "0" * 64},
                "imagePullSecrets": [{"name": "registry"}],
                "extraEnv": [{"name": "RUST_LOG", "value": "debug"}],
                "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
                "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
                "persistence": {"storageClass": "fast", "annotations": {"a": "b"}},
                "podAnnotations": {"a": "b"},
                "podLabels": {"c": "d"},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "timers", "operator": "Exists"}],
                "affinity": {"podAntiAffinity": {}},
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                ],
                "priorityClassName": "high",
                "serviceAccount": {"annotations": {"role": "timers"}},
            }
        )
        self.assertIn("ServiceMonitor", objects)
        self.assertTrue(container(objects)["image"].endswith("@sha256:" + "0" * 64))

    def test_an_autoscaler_owns_the_replicas(self):
        self.assertNotIn("replicas", render({"replicaCount": None})["StatefulSet"]["spec"])

    def test_new_settings_take_new_pods(self):
        checksum = lambda values: render(values)["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]
        self.assertNotEqual(checksum({"config": {"workers": 1}}), checksum({"config": {"workers": 2}}))

    def test_long_names_are_cut(self):
        for release in ("r" * 53, "punctual-" + "r" * 44):
            render(release=release)
        render({"fullnameOverride": "f" * 80, "nameOverride": "n" * 80})

    def test_two_releases_do_not_meet(self):
        selectors = [render(release=release)["StatefulSet"]["spec"]["selector"] for release in ("blue", "green")]
        self.assertNotEqual(*selectors)


# O5: what other charts do to numbers and words on their way to the application.
class Config(unittest.TestCase):
    def test_settings_are_passed_on_exactly(self):
        config = {
            "kafka": {
                "bootstrap_servers": "kafka:9092",
                "properties": {
                    "max.poll.interval.ms": 1800000,
                    "message.max.bytes": 9007199254740991,
                    "client.rack": "NO",
                    "sasl.password": "0123456",
                    "ssl.key.password": "true",
                },
            },
            "workers": 2,
            "kinds": [{"number": 1, "name": "email", "outbox": True}, {"number": 2, "name": "1e3"}],
            "commit": {"linger": "100ms"},
            "source": "a\nb: #c",
        }
        text = config_text(render({"config": config}))
        self.assertEqual(yaml.safe_load(text), config)
        self.assertIn("max.poll.interval.ms: 1800000\n", text)
        self.assertIn("client.rack: \"NO\"\n", text)

    def test_a_text_is_passed_on_byte_for_byte(self):
        text = "workers: 1 # one\nkafka:\n  properties: {message.max.bytes: 9007199254740993}\n\n# {{ end }}\n"
        self.assertEqual(config_text(render({"config": text})), text)

    def test_a_number_that_helm_rounds_is_refused(self):
        with self.assertRaisesRegex(Refused, r"config\.kafka\.properties\.x is a number that Helm cannot carry exactly"):
            render("config: {kafka: {properties: {x: 9007199254740993}}}")

    def test_what_the_chart_sets_is_refused(self):
        for config, words in (
            ({"instance": "a"}, "config.instance is set by the chart"),
            ({"state_dir": "/a"}, "config.state_dir is set by the chart"),
            ({"admin": {"listen": "0.0.0.0:1"}}, "use adminPort"),
        ):
            with self.assertRaisesRegex(Refused, words):
                render({"config": config})


class Values(unittest.TestCase):
    def test_misspelt_values_are_refused_by_name(self):
        for values in ({"replicas": 3}, {"image": {"tga": "1"}}, {"persistence": {"enabled": True}}):
            with self.assertRaisesRegex(Refused, "|".join(("replicas", "tga", "enabled"))):
                render(values)

    def test_values_of_a_wrong_type_are_refused(self):
        for values in ({"adminPort": "http"}, {"replicaCount": 1.5}, {"podLabels": {"a": 1}}, {"image": {"digest": "x"}}):
            with self.assertRaises(Refused):
                render(values)

    def test_it_works_as_a_subchart_with_globals(self):
        with tempfile.TemporaryDirectory() as parent:
            parent = pathlib.Path(parent)
            (parent / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 1.0.0\n")
            shutil.copytree(CHART, parent / "charts" / "punctual")
            values = {"global": {"region": "NO", "imageRegistry": ""}, "punctual": {"config": {"workers": 2}}}
            objects = render(values, chart=parent)
        self.assertEqual(yaml.safe_load(config_text(objects)), {"workers": 2})


if __name__ == "__main__":
    unittest.main()
