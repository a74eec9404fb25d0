"""Jars by their Maven coordinates, fetched once with the Ivy that the pyspark wheel has, and kept beside the virtual
environment.
"""

import subprocess
from pathlib import Path

from inlet.errors import EnvironmentLacks
from inlet.lake import beside
from inlet.lake.java import java


def fetched(name: str, coordinates: tuple[str, ...], with_others: bool = True) -> list[Path]:
    """The jars of some artifacts. In: the name of their folder, `group:artifact:version` of each, and whether what they
    depend on comes with them. Raises: EnvironmentLacks where they cannot be had.
    """
    import pyspark

    versions = dict.fromkeys(coordinate.rsplit(":", 1)[1] for coordinate in coordinates)
    folder = beside.folder("-".join([name, *versions]))
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    if not folder.exists():
        with beside.made(folder) as got:
            for coordinate in coordinates:
                into = f"{got}/[artifact]-[revision].[ext]"
                command = ["-confs", "default", "-dependency", *coordinate.split(":"), "-retrieve", into]
                command += [] if with_others else ["-notransitive"]
                done = subprocess.run(
                    [java(), "-jar", str(ivy), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
                if done.returncode or not any(got.glob("*.jar")):
                    raise EnvironmentLacks(
                        f"{coordinate} cannot be had: {done.stdout.strip()[-300:]}", "Check that Maven Central answers"
                    )
    return sorted(folder.glob("*.jar"))
