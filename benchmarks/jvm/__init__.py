"""Spark's own operator in the JVM, for benchmarks that Python is compared with; compiled when it is needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark

SOURCE = Path(__file__).with_name("Consumers.java")
CLASS_PATH = "spark.driver.extraClassPath"


def settings(folder: Path) -> dict[str, str]:
    """What a session needs to find the compiled class; nothing where there is no Java compiler."""
    if shutil.which("javac") is None:
        return {}
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run(["javac", "-cp", str(jars), "-d", str(folder), str(SOURCE)], check=True)
    return {CLASS_PATH: str(folder)}
