"""Every mending of the seams between driver, files and tasks is held by a test: taken out, that test fails.

Each is named by what goes wrong without it. Those `BY_THE_MODEL` are found by the campaigns of `test_model.py` and
`test_tuning_model.py`, and most by a test of one case as well. Those `BY_A_CASE` are where no lag, crash or restore has
a part in it, so that the model is the wrong place: how Spark's own plan treats a control or a policy that it cannot
read, how a path or URI is written and which file systems are fit, and the folder of ordered results, of another stream.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
READJ = "tests/place/test_readj.py::test_each_choice_is_the_best_there_is"
PLACING = "tests/control/test_model.py::test_a_stream_goes_on_whatever_lags_crashes_or_is_restored"
TUNING = (
    "tests/control/test_tuning_model.py::test_windows_are_given_once_and_whole_whatever_lags_crashes_or_is_restored"
)
NO_CONTROL = "    if code is None:\n        raise"
TAKEN_FOR_0 = "    if code is None:\n        return 0\n        raise"
EXAMPLES = "5"
"""Times as many as usual, so that what needs a rare order of steps is found by any seed."""


@dataclass(frozen=True)
class Mending:
    """Lines of a module in place of those that mend something, and the tests each of which fails with them."""

    module: str
    mended: str
    broken: str
    test: str
    case: str | None = None
    """The test of one case that fails too, where `test` is a campaign."""


BY_THE_MODEL = {
    "a hand-over is deleted before it is taken": Mending(
        "control/placing.py",
        "self._since.setdefault(ran_by.force, seen.batch)",
        "self._since.setdefault(ran_by.to_come or ran_by.force, seen.batch - self._retain)",
        PLACING,
    ),
    "another query goes by a folder": Mending(
        "control/version.py", "if version.query not in (0, digest(turn.query)):", "if False:", PLACING
    ),
    "the number of a version is used again": Mending(
        "control/announcing.py", "return self.folder.last() + 1", "return self.version.force + 1", PLACING
    ),
    "a loop does not see what another one announced": Mending(
        "control/announcing.py", "if found is not None and found != (self.version, self.whose):", "if False:", PLACING
    ),
    "rows without a control are taken for those of version 0": Mending(
        "operators/send.py", NO_CONTROL, TAKEN_FOR_0, PLACING
    ),
    "sizes come into force though rows were in their windows": Mending(
        "control/tuning.py", "if max(others, default=BEFORE_ALL) < sizes.sizes[-1][0]:", "if True:", TUNING
    ),
    "sizes are for one query, and another goes by them": Mending(
        "control/version.py", "if version.query not in (0, digest(turn.query)):", "if False:", TUNING
    ),
    "rows for tuned windows without a control are taken for those of version 0": Mending(
        "operators/send.py", NO_CONTROL, TAKEN_FOR_0, TUNING
    ),
    "a version is replaced": Mending(
        "control/version.py",
        'if not self.create(_file(number), self.text({"number": number, "before": before, "query": query, **fields})):',
        "self.write(_file(number), self.text({'number': number, 'before': before, 'query': query, **fields}))\n"
        "        if False:",
        PLACING,
        "tests/control/test_version.py",
    ),
    "a driver that is refused deletes what workers left for the announcement of another": Mending(
        "control/placements.py",
        "        self.write_placement(placement, before, query)  # refused if",
        '        if str(placement.version) in self.listed("moves"):\n'
        '            self.delete(f"moves/{placement.version}")\n'
        "        self.write_placement(placement, before, query)  # refused if",
        PLACING,
    ),
    "a hand-over of another placement is taken": Mending(
        "control/placements.py",
        'notes["placement"] != _digest(placement) or not',
        "not",
        PLACING,
        "tests/control/test_placements.py",
    ),
    "a hand-over that lacks a slot is taken": Mending(
        "control/placements.py",
        ' or not set(slots) <= set(notes["slots"]):',
        ":",
        PLACING,
        "tests/control/test_placements.py",
    ),
    "a hand-over of another query is taken": Mending(
        "control/placements.py",
        'if notes["query"] != turn.query:',
        "if False:",
        PLACING,
        "tests/control/test_placements.py",
    ),
    "a version of another query is read": Mending(
        "control/version.py",
        "if found[1] not in (None, turn.query):",
        "if False:",
        PLACING,
        "tests/control/test_version.py",
    ),
    "a loop learns from a query that the folder does not name": Mending(
        "control/announcing.py",
        "        if self.whose != query:\n            raise",
        "        if False:\n            raise",
        PLACING,
        "tests/control/test_rebuilt.py::test_a_loop_learns_nothing_from_a_query_that_its_folder_does_not_name",
    ),
    "a version stays in memory though the folder was restored": Mending(
        "control/version.py",
        "found = _once(self, number, turn.batch, turn.run)",
        'found = _once(self, number, 0, "")',
        PLACING,
        "tests/control/test_rebuilt.py::"
        "test_a_placement_is_read_anew_though_one_of_its_number_was_there_before_a_restore",
    ),
    "what was left is remembered though the folder was restored": Mending(
        "control/placements.py",
        "_left_once(self, version, turn.batch, turn.run)",
        '_left_once(self, version, turn.batch, "")',
        PLACING,
        "tests/control/test_rebuilt.py::"
        "test_copies_are_looked_for_anew_though_those_of_an_earlier_run_were_there_before_a_restore",
    ),
    "an announcement cannot be withdrawn": Mending(
        "control/placing.py",
        "self.say(replace(self.version, withdrawn=True), paused)",
        "pass",
        PLACING,
        "tests/control/test_announced.py::test_an_announcement_can_be_withdrawn_though_the_query_has_failed",
    ),
    "an owner takes rows that are not its own": Mending(
        "operators/process/worker.py",
        "        if len(astray):",
        "        if False:",
        PLACING,
        "tests/control/test_rebuilt.py::test_rows_of_a_slot_that_another_worker_owns_are_refused",
    ),
    "what can never be carried out stays announced": Mending(
        "control/announcing.py",
        "if self.announced and self.stuck and self.folder.count_start(run) > self.carried_on:",
        "if False:",
        PLACING,
        "tests/control/test_announced.py::test_an_announcement_that_cannot_be_carried_out_is_withdrawn_at_the_second_start",
    ),
    "a loop that meets the announcement of another handle fails": Mending(
        "control/announcing.py",
        "            return not self.version.announced",
        "            return True",
        PLACING,
        "tests/control/test_rebuilt.py::test_a_decision_waits_for_one_that_another_handle_announced",
    ),
    "AutoFlow is not told of micro-batches in which it is not asked": Mending(
        "control/placing.py",
        "        self.placer.learn(Counts(keys[came], rows[came], int(counts.sum()), tail))",
        "        pass",
        PLACING,
        "tests/control/test_placing.py",
    ),
    "AutoFlow adds a round whenever it is asked": Mending(
        "place/autoflow.py",
        "        counts = np.sum(self._rounds, axis=0)",
        "        self.learn(seen)\n        counts = np.sum(self._rounds, axis=0)",
        PLACING,
        "tests/control/test_placing.py::test_a_spike_moves_slots_by_the_rounds_it_lasts",
    ),
    "AutoFlow is told of counts that faded already": Mending(
        "control/placing.py",
        "        self.placer.learn(Counts(keys[came], rows[came], int(counts.sum()), tail))\n"
        "        self._recent.add(keys, rows, int(counts.sum()), tail)",
        "        self._recent.add(keys, rows, int(counts.sum()), tail)\n"
        "        self.placer.learn(self._recent.counts())",
        PLACING,
        "tests/control/test_placing.py",
    ),
    "a file is named before it is on the disk": Mending(
        "control/folder.py",
        "            os.fsync(out.fileno())",
        "            pass",
        PLACING,
        "tests/control/test_folder.py",
    ),
    "the name of a file is not on the disk": Mending(
        "control/folder.py", "        os.fsync(entry)", "        pass", PLACING, "tests/control/test_folder.py"
    ),
    "a file that is there already is created again": Mending(
        "control/folder.py",
        "self._write(name, data, _link)",
        "self._write(name, data, os.replace)",
        PLACING,
        "tests/control/test_folder.py",
    ),
    "sizes outlive the driver that announced them": Mending(
        "control/tuning.py",
        "        if self.announced:\n            self.withdraw()",
        "",
        TUNING,
        "tests/control/test_tuning_model.py::"
        "test_what_an_earlier_run_announced_is_withdrawn_though_the_start_of_the_next_is_heard_late",
    ),
    "sizes that a worker refused stay in force": Mending(
        "control/tuning.py",
        "if self.whose == query and self.folder.refused(self.version.force):",
        "if False:",
        TUNING,
        "tests/control/test_tuning_model.py::test_sizes_of_a_driver_that_has_forgotten_are_refused_once",
    ),
    "two loops of tuned windows do not see what each other announced": Mending(
        "control/announcing.py",
        "if found is not None and found != (self.version, self.whose):",
        "if False:",
        TUNING,
        "tests/control/test_tuning_model.py::test_two_loops_of_one_folder_number_their_sizes_one_after_the_other",
    ),
    "workers of tuned windows do not look whether sizes came too early": Mending(
        "operators/windows/adaptive.py",
        "if max(others, default=BEFORE_ALL) >= changes:",
        "if False:",
        TUNING,
        "tests/control/test_tuning_model.py::test_sizes_of_a_driver_that_has_forgotten_are_refused_once",
    ),
    "what a worker did is overwritten by the next micro-batch": Mending(
        "control/batch_sizes.py",
        'f"work/{turn.batch}/{turn.worker}.json"',
        'f"work/0/{turn.worker}.json"',
        TUNING,
        "tests/control/test_tuning.py",
    ),
}
BY_A_CASE = {
    "rows are lost where the control is gone": Mending(
        "spark/route.py",
        'return df.join(F.broadcast(file), F.lit(True), "left")',
        "return df.crossJoin(F.broadcast(file))",
        "tests/spark/test_process.py::test_a_control_file_that_is_gone_stops_the_query_and_loses_no_row",
    ),
    "a policy that is empty is taken for one without hot keys": Mending(
        "spark/split.py",
        'F.when(F.col("policy.version").isNotNull(), F.col("policy.keys")).otherwise(gone)',
        'F.coalesce(F.col("policy.keys"), F.array().cast("array<struct<key:bigint,lanes:array<int>>>"))',
        "tests/spark/test_keyed.py::test_the_policy_file_keeps_its_length_and_is_read_anew",
    ),
    "a policy that is gone is taken for one without hot keys": Mending(
        "spark/split.py",
        "options(wholetext=True, ignoreMissingFiles=False, ignoreCorruptFiles=False)",
        "options(wholetext=True)",
        "tests/spark/test_keyed.py::test_the_policy_file_keeps_its_length_and_is_read_anew",
    ),
    "a folder's name is a pattern to Spark": Mending(
        "control/folder.py",
        r'return re.sub(r"([][{}*?\\])", r"\\\1", f"{uri}/{name}")',
        'return f"{uri}/{name}"',
        "tests/control/test_folder.py",
    ),
    "Spark is sent to s3://": Mending(
        "control/folder.py",
        're.sub("^s3:", "s3a:", _without_options(self.uri))',
        "_without_options(self.uri)",
        "tests/control/test_folder.py",
    ),
    "a relative path is that of whoever reads it": Mending(
        "control/folder.py", 'f"file://{os.path.abspath(path)}"', 'f"file://{path}"', "tests/control/test_folder.py"
    ),
    "file:/x is no path": Mending(
        "control/folder.py",
        r'r"^file:(//(localhost)?(?=/)|(?=/(?!/)))"',
        'r"^file://(?=/)"',
        "tests/control/test_folder.py",
    ),
    "a space in the name of a bucket's folder is no part of it": Mending(
        "control/folder.py", "{quote(path)}", "{path}", "tests/control/test_folder.py"
    ),
    "Arrow is sent to s3a://": Mending(
        "control/folder.py",
        're.sub(r"^s3[an]://", "s3://", ',
        're.sub(r"^s3n://", "s3://", ',
        "tests/control/test_folder.py",
    ),
    "HDFS is written to where Hadoop's libraries are": Mending(
        "control/folder.py", 'if uri.startswith(("hdfs:", "viewfs:")):', "if False:", "tests/control/test_folder.py"
    ),
    "files are replaced where that is not one step": Mending(
        "control/folder.py", "if files.type_name not in _REPLACING:", "if False:", "tests/control/test_folder.py"
    ),
    "files of ordered results name no query": Mending(
        "control/outlet.py", "if delivery.query != query:", "if False:", "tests/control/test_delivery.py"
    ),
    "readj takes every move to cost nothing": Mending(
        "place/readj.py",
        "    if problem.before[item] == giver:\n",
        "    return 0.0\n    if problem.before[item] == giver:\n",
        READJ,
    ),
    "readj takes a move for cheap that is dear": Mending(
        "place/readj.py",
        "    if problem.before[item] == giver:\n",
        "    giver, taker = taker, giver\n    if problem.before[item] == giver:\n",
        READJ,
    ),
    "readj ignores the utility that was asked for": Mending(
        "place/readj.py",
        "    resources, channels = loads.shape\n",
        "    resources, channels = loads.shape\n    code = 0\n",
        READJ,
    ),
    "readj takes a move for as good whatever its volume": Mending(
        "place/readj.py", "(moved + cost) / ideal)) / frequencies[item]", "(moved + cost) / ideal))", READJ
    ),
    "readj takes a swap for as good whatever its volume": Mending(
        "place/readj.py", "(moved + cost) / ideal)) / volume", "(moved + cost) / ideal))", READJ
    ),
}
MENDINGS = BY_THE_MODEL | BY_A_CASE


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and of these tests, which may be broken."""
    path = tmp_path_factory.mktemp("house")
    for name in ("src", "tests"):
        shutil.copytree(HERE / name, path / name)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy2(HERE / name, path / name)
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "test"),
    [(what, test) for what, mending in MENDINGS.items() for test in (mending.test, mending.case) if test],
)
def test_what_was_mended_is_found_when_it_is_taken_out(house: Path, what: str, test: str) -> None:
    mending = MENDINGS[what]
    module = house / "src" / "skewless" / mending.module
    text = module.read_text()
    assert text.count(mending.mended) == 1, f"{mending.module} changed: say here what mends it now"
    module.write_text(text.replace(mending.mended, mending.broken))
    try:
        found = fails(house, test)
    finally:
        module.write_text(text)
    assert found


@pytest.mark.long
def test_the_tests_that_find_something_pass_where_nothing_is_taken_out(house: Path) -> None:
    tests = {test for mending in MENDINGS.values() for test in (mending.test, mending.case) if test}
    for test in sorted(tests):
        assert not fails(house, test), test


def fails(house: Path, test: str) -> bool:
    """Whether a test fails in a copy of the house: not for another reason, such as that there is no such test."""
    paths = os.pathsep.join([str(house / "src"), str(house)])
    environment = {**os.environ, "PYTHONPATH": paths, "SKEWLESS_TIMES": EXAMPLES, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=broken", "--hypothesis-seed=7", test]
    done = subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode == 1
