"""The Airflow DAG of an Inlet project: a task for each step, and for each group of sources that lands. README.md beside
this file says how to install it.

The tasks call `inlet run --step ...` and hold no logic: Inlet finds out what there is to do, and every step can run
again at any time. What is behind a task that failed does not run; the next run of the DAG goes on from there.

Two environment variables say where Inlet is:
    INLET_PROJECT   the project's folder; by default the one that has this file in its infra/airflow
    INLET_COMMAND   how `inlet` is called (words as in a shell: `docker exec inlet inlet` will do); by default that of
                    the project's .venv, else the one on PATH
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

sys.path.append(str(Path(__file__).resolve().parent))  # Airflow adds its DAG folder, of which this may be a part
from inlet_project import InletProject, outcome, read  # noqa: E402

PROJECT = Path(os.environ.get("INLET_PROJECT") or Path(__file__).resolve().parents[2])
OWN_COMMAND = PROJECT / ".venv" / "bin" / "inlet"
COMMAND = os.environ.get("INLET_COMMAND") or (shlex.quote(str(OWN_COMMAND)) if OWN_COMMAND.exists() else "inlet")
LONGEST_DELAY = timedelta(minutes=15)


class InletRun(BaseOperator):
    """Calls `inlet run` and turns its exit code into a state of the task. In: the words behind `inlet run`."""

    template_fields = ("words",)

    def __init__(self, *, words: list[str], **given):
        super().__init__(**given)
        self.words = words

    def execute(self, context) -> None:
        """Raises: AirflowFailException where trying again cannot help, AirflowException where it may."""
        lines = self._call([*shlex.split(COMMAND), "run", "--project", str(PROJECT), *self.words])
        if self.outlets:
            self._tell_assets(context, lines)

    def on_kill(self) -> None:
        """Interrupt it: Inlet ends its JVM, and nothing is lost."""
        if process := getattr(self, "process", None):
            os.killpg(process.pid, signal.SIGINT)

    def _call(self, command: list[str]) -> list[str]:
        """Run a command, its output in the task's log as it comes. Out: the lines."""
        self.log.info("%s", shlex.join(command))
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="backslashreplace",
                start_new_session=True,  # a group of its own, which `on_kill` reaches whole
            )
        except OSError as error:
            raise AirflowFailException(
                f"{command[0]} cannot be run: {error.strerror}. Set INLET_COMMAND to how `inlet` is called on "
                "this worker"
            ) from error
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip())
            self.log.info("%s", lines[-1])
        if code := self.process.wait():
            meaning, is_retried = outcome(code)
            said = next(filter(None, map(_error, reversed(lines))), "see the lines above")
            raise (AirflowException if is_retried else AirflowFailException)(f"exit code {code}, {meaning}: {said}")
        return lines

    def _tell_assets(self, context, lines: list[str]) -> None:
        """Let the assets say to which published point they have moved. Raises: AirflowSkipException where the views
        stayed, so that nothing is started that waits for them."""
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        published = [e for e in entries if e.get("step") == "publish" and "point" in e]
        point = next((e["point"] for e in published if e.get("moved", True)), None)
        if point is None and context["ti"].try_number == 1:  # an earlier try may have moved them, and died
            raise AirflowSkipException("The public views show what they did before")
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = {"point": point}


def _error(line: str) -> str:
    """What a line says that tells why a command ended; "" for any other."""
    if line.startswith("inlet: "):
        return line
    try:
        entry = json.loads(line)
    except ValueError:  # of a library
        return ""
    if not isinstance(entry, dict) or entry.get("level") != "error":
        return ""
    return "inlet: " + ". ".join(filter(None, (entry["message"], entry["remedy"])))


def make_dag(project: InletProject) -> DAG:
    """In: a project. Out: its DAG."""
    with DAG(
        dag_id=project.dag,
        description="Land what is new, decode it, bring the tables up to date, check each step, publish",
        doc_md=__doc__,
        schedule=project.schedule,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,  # a run takes all that is there, so one is as good as those that were missed
        max_active_runs=1,
        tags=["inlet"],
        default_args={
            "pool": project.pool,  # of one slot: one run at a time writes to a lakehouse
            "retries": project.retries,
            "retry_delay": timedelta(seconds=project.retry_delay_seconds),
            "retry_exponential_backoff": True,
            "max_retry_delay": LONGEST_DELAY,
            "execution_timeout": timedelta(minutes=project.timeout_minutes),
        },
    ) as dag:
        bronze = [InletRun(task_id=task, words=words) for task, words in project.bronze.items()]
        silver, gold = (InletRun(task_id=step, words=["--step", step]) for step in ("silver", "gold"))
        publish = InletRun(task_id="publish", words=["--step", "publish"], outlets=[Asset(a) for a in project.assets])
        bronze >> silver >> gold >> publish
    return dag


dag = make_dag(read(PROJECT))
