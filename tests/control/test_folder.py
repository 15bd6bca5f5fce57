"""Files of a folder: wherever it is, they are there whole or not at all, and Spark is told of them by its own names."""

from __future__ import annotations

import errno
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skewless.control import folder
from skewless.control.folder import Files, uri_of
from skewless.core.errors import SkewlessError


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(uri_of(str(tmp_path)))


def test_a_file_is_on_the_disk_before_it_has_its_name(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[bytes | None] = []
    real = os.fsync

    def fsync(file: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        flushed.append(path.read_bytes() if path.is_file() else None)
        assert (tmp_path / "a/b.json").exists() == path.is_dir()  # the name is there when the folder is flushed
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    files.write("a/b.json", b"all of it")
    assert flushed == [b"all of it", None]
    assert files.read("a/b.json") == b"all of it"


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.json", b"old")

    def full(_file: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        files.write("a.json", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_who_can_guess_no_name_can_point_a_write_elsewhere(files: Files, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    files.write("a.json", b"one")
    (tmp_path / "a.json").unlink()
    (tmp_path / "a.json").symlink_to(other)
    files.write("a.json", b"two")
    assert (other.read_bytes(), files.read("a.json")) == (b"precious", b"two")


@pytest.mark.parametrize(
    ("given", "arrow", "spark"),
    [
        ("/data/my run", "file:///data/my run", "file:///data/my run/x"),
        ("/data/run[1]", "file:///data/run[1]", r"file:///data/run\[1\]/x"),
        (r"/data/{a,b}*?\c", r"file:///data/{a,b}*?\c", r"file:///data/\{a,b\}\*\?\\c/x"),
        ("file:/data/run/", "file:///data/run", "file:///data/run/x"),
        ("file:///data/run", "file:///data/run", "file:///data/run/x"),
        ("s3://bucket/run", "s3://bucket/run", "s3a://bucket/run/x"),
        ("file://localhost/data/run", "file:///data/run", "file:///data/run/x"),
        ("FILE:///Data/Run", "file:///Data/Run", "file:///Data/Run/x"),
        ("s3a://bucket/run/", "s3://bucket/run", "s3a://bucket/run/x"),
        ("S3A://bucket/Run/", "s3://bucket/Run", "s3a://bucket/Run/x"),
        ("s3n://bucket/run", "s3://bucket/run", "s3a://bucket/run/x"),
        ("s3://bucket/run?region=eu-1", "s3://bucket/run?region=eu-1", "s3a://bucket/run/x"),
        ("gs://bucket/s3://run", "gs://bucket/s3://run", "gs://bucket/s3://run/x"),
        ("abfss://data@account.dfs.core.windows.net/run", *["abfss://data@account.dfs.core.windows.net/run"] * 2),
    ],
)
def test_a_folder_has_a_name_for_arrow_and_one_for_spark(given: str, arrow: str, spark: str) -> None:
    assert uri_of(given) == arrow
    assert Files(uri_of(given)).for_spark("x") == spark.removesuffix("/x") + "/x"


@pytest.mark.parametrize("scheme", ["gs://bucket", "s3://bucket", "abfss://data@account.dfs.core.windows.net"])
@pytest.mark.parametrize("path", ["x#1", "ru%20n", "run 1", "run[1]", "a=1:b+c@d", "{a,b}*", "äöü"])
def test_arrow_and_spark_find_one_folder_in_an_object_store_whatever_its_name(scheme: str, path: str) -> None:
    files = Files(uri_of(f"{scheme}/runs/{path}" + ("?region=eu-west-1" if scheme[:2] == "s3" else "")))
    bucket = scheme.split("://")[1].split("@")[0]
    assert files.place()[1] == f"{bucket}/runs/{path}"
    as_patterns = re.sub(r"([][{}*?])", r"\\\1", path)  # by which Hadoop finds these characters and no others
    assert files.for_spark("x") == f"{scheme.replace('s3:', 's3a:')}/runs/{as_patterns}/x"


def test_the_users_own_folder_can_be_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert uri_of("~/run") == "file:///home/ada/run"
    assert uri_of("/data/~run") == "file:///data/~run"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "folder is '', and must be a path or a URI as text, such as '/data/run'"),
        (b"/data", "folder is b'/data', and must be a path or a URI as text"),
        ("/", "folder is '/', the root of the disk; name a folder of its own"),
        ("file:///", "folder is '/', the root of the disk; name a folder of its own"),
    ],
)
def test_what_names_no_folder_of_its_own_is_refused(given: Any, words: str) -> None:
    with pytest.raises(SkewlessError, match=re.escape(words)):
        uri_of(given)


def test_a_relative_path_is_that_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert uri_of("runs/1") == f"file://{tmp_path}/runs/1"


def test_a_folder_of_another_machine_is_refused_with_a_remedy() -> None:
    with pytest.raises(SkewlessError, match="the folder 'file://other/data' is on another machine; mount it"):
        uri_of("file://other/data")


def test_what_arrow_is_told_beside_the_path_is_no_part_of_a_files_name() -> None:
    assert Files(uri_of("s3a://bucket/run/?region=eu-1")).shown("control.json") == "s3://bucket/run/control.json"


@pytest.mark.parametrize(
    "uri", ["hdfs://nowhere:9000/run", "HDFS://nowhere/run", "viewfs://nowhere/run", "mock:///run"]
)
def test_where_a_file_cannot_be_replaced_in_one_step_a_folder_is_refused_by_name(uri: str) -> None:
    scheme = uri.split(":")[0].lower()
    message = f"the folder '{scheme}:.*' is on {scheme}, where a file cannot be replaced in one step"
    with pytest.raises(SkewlessError, match=message):
        Files(uri_of(uri)).write("a.json", b"x")


def test_of_many_that_create_a_file_at_once_one_does_and_its_content_stays(files: Files, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for name in map(str, range(20)):
            first = list(pool.map(lambda i, name=name: files.create(name, b"%d" % i), range(8)))
            assert first.count(True) == 1
            assert files.read(name) == b"%d" % first.index(True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(map(str, range(20)))  # nothing is left aside


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_is_created_on_a_disk_without_hard_links(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def link(_aside: str, _path: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)
    assert files.create("a.json", b"one")
    assert not files.create("a.json", b"two")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"one"]


def test_another_failure_to_create_a_file_is_not_taken_for_a_disk_without_hard_links(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_aside: str, _path: str) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="no space left"):
        files.create("a.json", b"one")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_in_a_file(files: Files) -> None:
    files.write("moves/3", b"")
    assert files.listed("moves/3") == []
    files.delete("moves/3")
    assert files.listed("moves") == []


def test_an_object_store_gets_a_file_under_its_own_name_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_REPLACING", ("mock",))  # a file system in memory stands for the store
    folder._file_system.cache_clear()
    files = Files("mock:///bucket")
    files.place()[0].create_dir("bucket")
    monkeypatch.setattr(folder, "_write_local", None)
    for data in (b"one", b"two"):
        files.write("a.json", data)
        assert (files.read("a.json"), files.listed()) == (data, ["a.json"])
    folder._file_system.cache_clear()
