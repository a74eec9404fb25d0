"""What pyproject.toml cannot say: a wheel carries dbt's macros, the suites of checks and the Airflow DAG, which `inlet
init` copies into a new project.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
LEFT_OUT = shutil.ignore_patterns(
    "target", "logs", "dbt_packages", "gold", "shop", ".user.yml", "__pycache__"
)  # made by dbt, and the demo's own models and marts


class BuildWithProject(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in ("dbt", "expectations", "infra/airflow"):
                shutil.copytree(
                    HERE / name, Path(self.build_lib) / "inlet" / "_project" / name, ignore=LEFT_OUT, dirs_exist_ok=True
                )


setup(cmdclass={"build_py": BuildWithProject})
