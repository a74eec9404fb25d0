"""The asset bundle of Databricks: what it is made of, what is refused, and that everything it names exists."""

import copy
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from inlet import config
from inlet.commands import databricks_bundle, databricks_check, databricks_settings, deploy
from inlet.errors import ConfigError
from tests import projects
from tests.test_airflow import HERE as AIRFLOW
from tests.test_cli import inlet

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(AIRFLOW))
from inlet_project import ProjectError  # noqa: E402
from inlet_project import read as read_for_airflow  # noqa: E402

NAMES = ("shop", "depot_tokyo", "depot_osaka")
WHEEL = "dist/inlet-0.1.0-py3-none-any.whl"


def made(root: Path, settings: dict | str = "", sources: dict | None = None) -> config.Project:
    """A project with its settings, and a file in the place of its wheel. In: settings as fields or as text."""
    project = projects.make(root, sources or dict.fromkeys(NAMES, projects.DEPOT))
    text = settings if isinstance(settings, str) else yaml.safe_dump(settings, sort_keys=False)
    (root / "pipelines" / "databricks.yml").write_text(text, encoding="utf-8")
    (root / "dist").mkdir(exist_ok=True)
    wheel(root / WHEEL)
    return project


def wheel(path: Path, script: str = "inlet") -> None:
    """What of a wheel is looked at: its entry points."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("inlet-0.1.0.dist-info/entry_points.txt", f"[console_scripts]\n{script} = inlet.cli:main\n")


def bundle(project: config.Project) -> dict[str, dict]:
    """The files of a bundle, read from their text."""
    texts = deploy.generate(project)
    return {path.removeprefix("infra/databricks/"): yaml.safe_load(text) for path, text in texts.items()}


def job(project: config.Project) -> dict:
    return bundle(project)["resources/job.yml"]["resources"]["jobs"]["inlet"]


def words(task: dict) -> list[str]:
    return task["python_wheel_task"]["parameters"]


def test_the_bundle_of_this_repository_is_fresh_and_without_faults():
    project = config.load(ROOT)
    assert deploy.stale(project, deploy.generate(project)) == [], "run `inlet deploy databricks`"
    assert databricks_check.has_models()
    assert databricks_check.faults(ROOT / "infra" / "databricks", bundle(project)) == []


def test_without_settings_the_steps_run_one_after_the_other_by_hand(tmp_path):
    of = job(made(tmp_path))
    lakehouse = "catalog://${var.catalog}/"
    given = ["run", "--project", "${workspace.file_path}", "--lakehouse", lakehouse, "--tries", "5", "--step"]
    assert [(task["task_key"], words(task)) for task in of["tasks"]] == [
        (step, [*given, step]) for step in ("bronze", "silver", "gold", "publish")
    ]
    assert [task.get("depends_on") for task in of["tasks"]] == [
        None,
        *([{"task_key": step}] for step in ("bronze", "silver", "gold")),
    ]
    assert not {"schedule", "trigger", "email_notifications"} & of.keys()
    assert (of["max_concurrent_runs"], of["queue"]) == (1, {"enabled": True})
    assert {(task["max_retries"], task["disable_auto_optimization"]) for task in of["tasks"]} == {(0, True)}
    (environment,) = of["environments"]
    assert environment["spec"] == {"environment_version": "5", "dependencies": [f"../../../{WHEEL}"]}


def test_all_settings_are_in_the_bundle(tmp_path):
    project = made(
        tmp_path,
        {
            "schedule": "0 30 2 ? * MON-FRI",
            "timezone": "Asia/Tokyo",
            "prefix": "cdc_",
            "warehouse": "0123456789abcdef",
            "environment_version": "6",
            "timeout_minutes": 30,
            "warn_minutes": 20,
            "tries": 2,
            "notify": ["ops@example.com"],
            "permissions": [{"group": "all of us", "level": "CAN_VIEW"}],
            "readers": ["analysts"],
            "targets": {
                "dev": {"host": "https://dev.example.com", "permissions": []},
                "prod": {"catalog": "live", "run_as": "a-b-c", "root_path": "/Workspace/inlet", "paused": True},
            },
        },
    )
    (tmp_path / "dbt/models/marts").mkdir(parents=True)
    (tmp_path / "dbt/dbt_project.yml").write_text("name: inlet\n")
    (tmp_path / "dbt/models/marts/sales.sql").write_text("select 1 as a\n")
    of, made_of = job(project), bundle(project)
    assert of["schedule"] == {"quartz_cron_expression": "0 30 2 ? * MON-FRI", "timezone_id": "Asia/Tokyo"}
    assert of["health"] == {"rules": [{"metric": "RUN_DURATION_SECONDS", "op": "GREATER_THAN", "value": 1200}]}
    assert of["email_notifications"] == {
        "on_failure": ["ops@example.com"],
        "on_duration_warning_threshold_exceeded": ["ops@example.com"],
    }
    assert {task["timeout_seconds"] for task in of["tasks"]} == {1800} and "2" in words(of["tasks"][0])
    assert of["tasks"][-1]["depends_on"] == [{"task_key": "publish"}]
    assert of["tasks"][-1]["dbt_task"] == {
        "project_directory": "../../../dbt",
        "commands": ["""dbt build --select marts --vars '{"prefix": "cdc_"}'"""],
        "warehouse_id": "${var.warehouse}",
        "catalog": "${var.catalog}",
        "schema": "cdc_gold",
    }
    schemas = made_of["resources/schemas.yml"]["resources"]["schemas"]
    assert {key: schema["name"] for key, schema in schemas.items()} == {
        **{key: f"cdc_{key}" for key in ("bronze", "silver", "gold", "checks", "public")},
        "marts": "marts",
    }
    assert {key for key, schema in schemas.items() if "grants" in schema} == {"public", "marts"}
    assert all(schema["lifecycle"] == {"prevent_destroy": True} for schema in schemas.values())
    assert made_of["databricks.yml"]["targets"] == {
        "dev": {
            "default": True,
            "workspace": {"host": "https://dev.example.com"},
            "presets": {"trigger_pause_status": "PAUSED"},
            "variables": {"catalog": "main_dev", "warehouse": "0123456789abcdef"},
        },
        "prod": {
            "mode": "production",
            "workspace": {"root_path": "/Workspace/inlet"},
            "run_as": {"service_principal_name": "a-b-c"},
            "presets": {"trigger_pause_status": "PAUSED"},
            "variables": {"catalog": "live", "warehouse": "0123456789abcdef"},
            "resources": {"jobs": {"inlet": {"permissions": [{"level": "CAN_VIEW", "group_name": "all of us"}]}}},
        },
    }
    deploy.write(project)
    assert databricks_check.faults(tmp_path / "infra" / "databricks", made_of) == []


def test_a_folder_of_a_volume_is_watched_in_the_catalog_of_each_target(tmp_path):
    arrival = job(made(tmp_path, "file_arrival: /Volumes/main/bronze/landing/shop/"))["trigger"]["file_arrival"]
    assert arrival["url"] == "/Volumes/${var.catalog}/bronze/landing/shop/"


GROUPS = (
    {},
    {"tokyo": ["depot_tokyo"], "web": ["shop"]},
    {"all": list(NAMES)},
    {"on": ["shop"], "depots": ["depot_osaka", "depot_tokyo"]},
)


@pytest.mark.parametrize("groups", GROUPS)
def test_groups_make_the_tasks_of_bronze_that_airflow_has(tmp_path, groups):
    text = yaml.safe_dump({"groups": groups}, sort_keys=False)
    of = job(made(tmp_path, text))
    (tmp_path / "pipelines" / "airflow.yml").write_text(text)
    bronze = [task for task in of["tasks"] if task["task_key"].startswith("bronze")]
    assert {task["task_key"]: words(task)[7:] for task in bronze} == read_for_airflow(tmp_path).bronze
    assert [one["task_key"] for one in of["tasks"][len(bronze)]["depends_on"]] == [t["task_key"] for t in bronze]
    assert [task.get("run_if") for task in bronze] == [None, *["ALL_DONE"] * (len(bronze) - 1)]


@pytest.mark.parametrize(
    "groups", [{"a": ["depot_kyoto"]}, {"a": ["shop"], "b": ["shop"]}, {"a b": ["shop"]}, {"rest": ["shop"]}, {"a": []}]
)
def test_groups_that_airflow_refuses_are_refused(tmp_path, groups):
    text = yaml.safe_dump({"groups": groups}, sort_keys=False)
    project = made(tmp_path, text)
    (tmp_path / "pipelines" / "airflow.yml").write_text(text)
    with pytest.raises(ProjectError):
        read_for_airflow(tmp_path)
    with pytest.raises(ConfigError, match="databricks.yml: "):
        deploy.generate(project)


def test_extras_that_sources_need_are_packages_and_never_spark(tmp_path):
    kafka = {"transport": "kafka", "servers": "h:9092", "topics": ["a"]}
    sources = {
        "topics": {"codec": "qlik_json", "from": kafka},
        "files": projects.DEPOT | {"from": "s3://landing/depot/*.lxg"},
    }
    project = made(tmp_path, sources=sources)
    assert databricks_bundle.extras(project) == ["kafka", "s3"]
    assert job(project)["environments"][0]["spec"]["dependencies"][1:] == [
        "confluent-kafka",
        "aiobotocore",
        "botocore",
        "s3fs",
    ]


def test_a_source_outside_the_volume_of_deliveries_is_named(tmp_path):
    files = {"depot": projects.DEPOT, "bay": projects.DEPOT | {"from": "deliveries/*.lxg"}}
    _, note, *_ = deploy.notes(made(tmp_path, sources=files))
    assert note.startswith("bay: `from` is no folder of the volume landing")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("schedule: '*/15 * * * *'", "schedule: expected the 6 or 7 fields of Quartz (seconds minutes hours"),
        ("schedule: '0 0 25 * * ?'", "schedule: hours: 25 is no value of it"),
        ("schedule: '0 0 2 * * *'", "schedule: one of day and weekday, and only one, has to be ?"),
        ("{schedule: '0 0 2 * * ?', file_arrival: /Volumes/a/b/c}", "schedule and file_arrival are both given"),
        ("file_arrival: landing/shop", "file_arrival: expected a folder of a volume (/Volumes/...)"),
        ("timezone: Mars/Base", "timezone: expected a time zone as Asia/Tokyo, found 'Mars/Base'"),
        ("environment_version: 5", "environment_version: expected text, found 5 (write it in quotes)"),
        ("environment_version: '2'", "environment_version: expected 4 or later, whose Spark has VARIANT, found 2"),
        ("tries: '5'", "tries: expected a whole number, found 5"),
        ("job: a b", "job: expected letters, digits and _ . -, found 'a b'"),
        ("job: ${bundle.name}", "job: expected letters, digits and _ . -"),
        ("catalog: 'main\"; drop'", "catalog: expected a catalog: lower-case letters, digits, _ and -"),
        ("prefix: cdc.", "prefix: expected lower-case letters, digits and _, found 'cdc.'"),
        ("warehouse: mine", "warehouse: expected the id of a SQL warehouse"),
        ("wheel: /home/me/inlet.whl", "wheel: expected the path of a wheel"),
        ("notify: [ops]", "notify.0: expected an address of e-mail, found 'ops'"),
        ("notify: ['a ${b}@example.com']", "notify.0: expected an address of e-mail"),
        ("readers: ['${var.catalog}']", "readers.0: expected a name of up to 255 printable characters without ${"),
        ('readers: ["a\\nb"]', "readers.0: expected a name of up to 255 printable characters"),
        ("permissions: [{level: CAN_VIEW}]", "permissions.0: expected one of group, user and service_principal"),
        ("permissions: [{level: OWNER, group: a}]", "permissions.0.level"),
        ("targets: {dev: {catalog: main}}", "dev and prod would both write to the catalog main"),
        ("targets: {dev: {warehouse: 0123456789abcdef}}", "both have a warehouse for the marts, or neither"),
        ("targets: {dev: {host: dev.example.com}}", "targets.dev.host: expected the address of a workspace"),
        ("targets: {test: {}}", "targets.test: is not known"),
        ("schedul: x", "schedul: is not known; did you mean schedule?"),
        ("[a]", "expected fields, found a list"),
        ("a: [", "is not YAML"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path, settings, sentence):
    project = made(tmp_path, settings)
    with pytest.raises(ConfigError) as error:
        deploy.generate(project)
    assert sentence in str(error.value) and str(tmp_path / "pipelines" / "databricks.yml") in str(error.value)


ODD = [
    'data "ops"',
    "it's: us",
    "# all",
    "- ad hoc",
    "{a}",
    "1e3",
    "yes",
    "NO",
    "~",
    "null",
    "0o17",
    "ünïcode 倉庫",
    "a\\b",
    "%x",
]


def test_odd_names_are_texts_in_the_yaml(tmp_path):
    permissions = [{"group": name, "level": "CAN_VIEW"} for name in ODD]
    project = made(tmp_path, {"readers": ODD, "permissions": permissions})
    made_of = bundle(project)
    grants = made_of["resources/schemas.yml"]["resources"]["schemas"]["public"]["grants"]
    assert [grant["principal"] for grant in grants] == ODD
    prod = made_of["databricks.yml"]["targets"]["prod"]["resources"]["jobs"]["inlet"]["permissions"]
    assert [permission["group_name"] for permission in prod] == ODD
    deploy.write(project)
    assert databricks_check.faults(tmp_path / "infra" / "databricks", made_of) == []
    written = (tmp_path / "infra/databricks/resources/schemas.yml").read_text("utf-8")
    assert {'principal: "1e3"', 'principal: "0o17"', 'principal: "~"'} <= set(
        map(str.strip, written.replace("- ", "").split("\n"))
    )


def test_text_that_some_reader_of_yaml_takes_for_a_number_is_quoted():
    """Go reads 1e3 and 0o17 as numbers, and Python does not."""
    assert databricks_bundle.as_yaml({"names": ["1e3", "0o17", "5", "yes", "a word"]}) == (
        'names:\n- "1e3"\n- "0o17"\n- "5"\n- \'yes\'\n- a word\n'
    )


JOB = "resources/job.yml"
DAMAGE = {  # what is put where -> the sentence
    "an environment that the job lacks": (
        ("tasks", 0, "environment_key"),
        "other",
        "bronze has the environment other; the job has inlet",
    ),
    "no environment": (("tasks", 0, "environment_key"), None, "bronze has the environment none"),
    "a task that is not there": (
        ("tasks", 1, "depends_on", 0, "task_key"),
        "bronz",
        "silver comes after bronz, which is no task",
    ),
    "tasks that wait for each other": (
        ("tasks", 0, "depends_on"),
        [{"task_key": "publish"}],
        "tasks wait for each other",
    ),
    "two tasks of a name": (("tasks", 1, "task_key"), "bronze", "are called bronze"),
    "retries": (("tasks", 0, "max_retries"), 3, "bronze would be tried again after a failed check"),
    "no timeout": (("tasks", 0, "timeout_seconds"), 0, "bronze has no timeout"),
    "a version as a number": (
        ("environments", 0, "spec", "environment_version"),
        5,
        "environment_version is a number in quotes, found 5",
    ),
    "PySpark": (
        ("environments", 0, "spec", "dependencies"),
        ["pyspark==4.1.4"],
        "pyspark==4.1.4 brings PySpark, which ends the session",
    ),
    "a wheel that is not there": (
        ("environments", 0, "spec", "dependencies"),
        ["../../../dist/other.whl"],
        "there is no wheel other.whl in",
    ),
    "an entry point that the wheel lacks": (
        ("tasks", 0, "python_wheel_task", "entry_point"),
        "main",
        "bronze: inlet-0.1.0-py3-none-any.whl has no entry point main",
    ),
    "another package": (
        ("tasks", 0, "python_wheel_task", "package_name"),
        "outlet",
        "bronze: the package outlet is not that of",
    ),
    "a cron of 5 fields": (
        ("schedule",),
        {"quartz_cron_expression": "*/15 * * * *", "timezone_id": "UTC"},
        "schedule: expected the 6 or 7 fields",
    ),
    "a variable that is not declared": (("name",), "a ${var.other}", "${var.other} is nothing that the bundle has"),
    "a resource that is not there": (("name",), "${resources.schemas.x.name}", "is nothing that the bundle has"),
    "a field that the model lacks": (("tasks", 0, "retries"), 3, "Unexpected field 'retries' for class Task"),
    "a field at depth": (
        ("environments", 0, "spec", "version"),
        "5",
        "Unexpected field 'version' for class Environment",
    ),
    "a value that the model lacks": (("health", "rules", 0, "op"), "LESS_THAN", "'LESS_THAN' is not a valid"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_leads_nowhere_or_is_unknown_is_named(tmp_path, what):
    place, value, sentence = DAMAGE[what]
    project = made(tmp_path)
    deploy.write(project)
    contents = copy.deepcopy(bundle(project))
    folder = tmp_path / "infra" / "databricks"
    assert databricks_check.faults(folder, contents) == []
    at = contents[JOB]["resources"]["jobs"]["inlet"]
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = value
    found = databricks_check.faults(folder, contents)
    assert any(sentence in one and one.startswith("resources/job.yml: ") for one in found), found


def test_what_targets_change_is_there_and_fits_the_models(tmp_path):
    project = made(tmp_path)
    deploy.write(project)
    contents = bundle(project)
    contents["databricks.yml"]["targets"]["dev"] |= {
        "variables": {"colour": "red"},
        "resources": {"jobs": {"other": {}, "inlet": {"permissions": [{"level": "OWNER"}]}}},
    }
    contents["databricks.yml"]["sync"]["paths"].append("../../nowhere")
    found = databricks_check.faults(tmp_path / "infra" / "databricks", contents)
    assert found == [
        "databricks.yml: sync.paths: there is no folder ../../nowhere",
        "databricks.yml: targets.dev sets the variable colour, which is not declared",
        "databricks.yml: targets.dev changes jobs.other, which the bundle does not have",
        "resources/job.yml: jobs.inlet: 'OWNER' is not a valid JobPermissionLevel",
    ]


def test_the_command_writes_checks_and_says_what_is_wrong(tmp_path):
    made(tmp_path, "readers: [analysts]")
    written = inlet("deploy", "databricks", "--project", tmp_path)
    assert written.returncode == 0 and written.stdout.count("wrote infra/databricks/") == 4
    assert "note: No workspace has run this bundle yet" in written.stdout
    assert inlet("deploy", "databricks", "--check", "--project", tmp_path).returncode == 0
    (tmp_path / "pipelines" / "databricks.yml").write_text("readers: [others]")
    stale = inlet("deploy", "databricks", "--check", "--project", tmp_path)
    assert (stale.returncode, "1 file stale: infra/databricks/resources/schemas.yml" in stale.stderr) == (2, True)
    assert inlet("deploy", "databricks", "--project", tmp_path).returncode == 0
    (tmp_path / WHEEL).unlink()
    lacking = inlet("deploy", "databricks", "--check", "--project", tmp_path)
    assert lacking.returncode == 2 and "there is no wheel inlet-0.1.0-py3-none-any.whl" in lacking.stderr
    assert inlet("deploy", "airflow", "--project", tmp_path).returncode == 2


def test_a_file_of_a_person_is_not_overwritten_and_what_is_left_over_is_removed(tmp_path):
    project = made(tmp_path)
    deploy.write(project)
    resources = tmp_path / "infra" / "databricks" / "resources"
    (resources / "old.yml").write_text(f"# {databricks_bundle.MARK}\n")
    (resources / "mine.yml").write_text("resources: {}\n")
    assert deploy.write(project) == ["infra/databricks/resources/old.yml"]
    assert sorted(path.name for path in resources.iterdir()) == ["job.yml", "mine.yml", "schemas.yml", "volumes.yml"]
    (resources / "job.yml").write_text("resources: {}\n")
    with pytest.raises(ConfigError, match="job.yml was not written by Inlet"):
        deploy.write(project)


def test_damaged_files_next_to_a_bundle_are_refused_in_words(tmp_path):
    project = made(tmp_path)
    deploy.write(project)
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as packed:
        packed.writestr("inlet-0.1.0.dist-info/entry_points.txt", b"no section \xff")
    with pytest.raises(ConfigError, match="inlet-0.1.0-py3-none-any.whl is no wheel"):
        deploy.check(project)
    (tmp_path / WHEEL).write_bytes(b"PK")
    with pytest.raises(ConfigError, match="inlet-0.1.0-py3-none-any.whl is no wheel"):
        deploy.check(project)
    (tmp_path / "pyproject.toml").write_text("[project\n")
    with pytest.raises(ConfigError, match="pyproject.toml is no TOML"):
        deploy.check(project)


def test_without_the_models_all_else_is_checked_and_that_is_said(tmp_path, monkeypatch):
    project = made(tmp_path)
    deploy.write(project)
    monkeypatch.setattr(databricks_check, "has_models", lambda: False)
    assert "databricks-bundles is not installed" in deploy.check(project)[-1]
    shutil.rmtree(tmp_path / "dist")
    with pytest.raises(ConfigError, match="there is no wheel"):
        deploy.check(project)


def test_every_field_of_the_settings_is_in_their_page():
    page = (ROOT / "docs" / "databricks.md").read_text()
    models = (databricks_settings.DatabricksSettings, databricks_settings.Target, databricks_settings.Permission)
    assert [name for model in models for name in model.model_fields if f"{name}:" not in page] == []


@pytest.mark.proof
def test_dbt_for_databricks_reads_the_project(tmp_path):
    """dbt-databricks in an environment of its own, as the task of the marts has it; it asks no warehouse to parse."""
    uv, dbt = Path(sys.executable).with_name("uv"), tmp_path / "dbt" / "bin"
    subprocess.run([uv, "venv", "-q", tmp_path / "dbt", "-p", sys.executable], check=True)
    packages = [*databricks_bundle.DBT, "pydantic", "pyyaml"]
    subprocess.run([uv, "pip", "install", "-q", "-p", dbt / "python", *packages], check=True)
    warehouse = {"host": "example.com", "http_path": "/sql/1.0/warehouses/0123456789abcdef", "token": "none"}
    target = {"type": "databricks", "catalog": "main", "schema": "cdc_gold", **warehouse}
    profile = {"inlet": {"target": "prod", "outputs": {"prod": target}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    words = [dbt / "dbt", "parse", "--project-dir", ROOT / "dbt", "--profiles-dir", tmp_path, "--target-path"]
    words += [tmp_path / "target", "--log-path", tmp_path / "logs", "--vars", '{"prefix": "cdc_"}']
    subprocess.run(words, check=True, env={"PYTHONPATH": str(ROOT / "pipelines"), "PATH": str(dbt)})
    manifest = json.loads((tmp_path / "target" / "manifest.json").read_text())
    assert manifest["sources"]["source.inlet.public.payments"]["schema"] == "cdc_public"
    assert manifest["nodes"]["model.inlet.daily_sales"]["database"] == "main"
