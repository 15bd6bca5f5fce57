"""The Q-table reducer of a stream, without Spark: tasks, retries, lost and late reports, crashes and restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control.cooperating import Cooperating, one_of_each
from skewless.control.loop import Chosen, Observed
from skewless.control.q_table import Message, Table, TableFile
from skewless.core.errors import SkewlessError
from skewless.split import Broadcast, Changes, CooperativeDalton
from skewless.split.hot import threshold

WORKERS, HOT_AT = 4, 0.5


def loop_at(tmp_path, merge="normalised", stream="1f3a"):
    splitter = CooperativeDalton(WORKERS, slide=40, hot_at=HOT_AT, merge=merge)
    return Cooperating("clicks", splitter, TableFile(f"file://{tmp_path}", stream), Chosen("dalton", "as asked"))


def task(file, keys, batch=0, number=0, attempt=0, merge="normalised"):
    """What a task does: start from the file, route, tell. Every row gets a worker that there is."""
    table = file.get()
    own = CooperativeDalton(WORKERS, slide=40, hot_at=HOT_AT, merge=merge, seed=100 * batch + number)
    own.start(table.common)
    routed = own.route(np.array(keys, dtype=np.int64))
    assert len(routed) == len(keys)
    assert not len(keys) or (routed.min() >= 0 and routed.max() < WORKERS)
    return Message(table.version, batch, number, attempt, own.changes())


def report(messages, batch=0, query="q", run="r"):
    return Observed(query, run, batch, told=tuple(each.text(loads=True) for each in messages))


KEYS = [7] * 12 + [8] * 6 + [1, 2, 3, 4, 5, 6]


def test_every_micro_batch_makes_a_version_that_tasks_find(tmp_path):
    loop = loop_at(tmp_path)
    assert loop.file.get().version == 0
    for batch in range(3):
        told = [task(loop.file, KEYS, batch, number) for number in range(2)]
        assert [each.version for each in told] == [batch] * 2
        assert loop.hear(report(told, batch))
        there = loop.file.get()
        assert there.version == loop.table.version == batch + 1
        np.testing.assert_allclose(there.common.values, loop.table.common.values, atol=1e-6)
        assert sorted(there.common.keys.tolist()) == [7, 8]
    assert (loop.table.common.load, loop.table.common.partitioners, loop.behind) == (48, 2, 0)
    words = "\n".join(loop.describe())
    assert (
        "Q-table version 3: 2 hot keys, from 2 tasks that started 0 versions before; 0 messages were dropped" in words
    )
    assert "key hash 7 has 50.0% of the rows" in words


def test_of_several_attempts_at_a_task_the_last_counts_in_whatever_order_they_come(tmp_path):
    once, twice = loop_at(tmp_path, stream="a"), loop_at(tmp_path, stream="b")
    right = [task(once.file, KEYS, 0, 0, attempt=5), task(once.file, KEYS[::-1], 0, 1, attempt=9)]
    wrong = [task(once.file, [9] * 30, 0, 0, attempt=3), task(once.file, [9] * 30, 0, 1, attempt=8)]
    once.hear(report(right))
    twice.hear(report([wrong[0], right[1], right[0], wrong[1], right[0]]))
    assert (once.dropped, twice.dropped) == (0, 3)
    assert twice.table.common.keys.tolist() == once.table.common.keys.tolist()
    assert twice.table.common.load == 48
    np.testing.assert_array_equal(twice.table.common.values, once.table.common.values)
    stray = replace(right[0], batch=1)
    assert one_of_each([stray, right[0]], 0) == [right[0]]


def test_a_micro_batch_that_is_run_again_after_a_crash_is_counted_once(tmp_path):
    loop = loop_at(tmp_path)
    for batch in range(2):
        loop.hear(report([task(loop.file, KEYS, batch)], batch, run="r1"))
    loop.end("r1", "q")
    before = loop.table
    loop.hear(report([task(loop.file, KEYS, 1, attempt=70)], 1, run="r2"))
    assert loop.table is before
    loop.hear(report([task(loop.file, KEYS, 2)], 2, run="r2"))
    assert loop.table.version == 3
    loop.end("r2", "q")
    loop.hear(report([task(loop.file, KEYS, 0)], 0, query="another", run="r3"))  # with a new checkpoint
    assert loop.table.version == 4


def test_a_second_query_that_runs_the_same_dataframe_teaches_nothing(tmp_path):
    loop = loop_at(tmp_path)
    loop.hear(report([task(loop.file, KEYS)], run="first"))
    assert not loop.hear(report([task(loop.file, [9] * 30, 1)], 1, query="other", run="second"))
    assert loop.table.version == 1


def test_two_queries_over_one_stream_have_a_table_each(tmp_path):
    one, two = loop_at(tmp_path, stream="a"), loop_at(tmp_path, stream="b")
    one.hear(report([task(one.file, KEYS)], query="one", run="r1"))
    two.hear(report([task(two.file, [9] * 30)], query="two", run="r2"))
    assert (one.file.get().common.keys.tolist(), two.file.get().common.keys.tolist()) == ([7, 8], [9])


def test_what_a_loop_cannot_read_leaves_the_table_as_it_is(tmp_path, caplog):
    loop = loop_at(tmp_path)
    loop.hear(report([task(loop.file, KEYS)]))
    assert loop.hear(Observed("q", "r", 1, told=("{",)))
    assert loop.table.version == loop.file.get().version == 1
    assert "what is in force stays" in caplog.text
    loop.hear(Observed("q", "r", 2))  # the report has no messages: they were lost
    loop.hear(report([task(loop.file, KEYS, 3)], 3))
    assert loop.table.version == 2


def plain_round(table, told, ended):
    """`learned` with dictionaries: the values of hot keys, and until when they are hot."""
    load, counts, values, until = 0, Counter(), {}, {}
    for message in told:
        load += message.changes.tuples
        counts.update(dict(zip(message.changes.counted.tolist(), message.changes.counts.tolist(), strict=True)))
    for key in {*table, *counts}:
        hot_until = ended + 1 if counts[key] >= threshold(HOT_AT, load, WORKERS) else table.get(key, (None, -1))[1]
        if hot_until <= ended:
            continue
        total, weight = np.zeros(WORKERS), 0.0
        for message in told:
            changes, before = message.changes, table.get(key, (None, None))[0]
            if key not in changes.keys and before is None:
                continue
            own = np.full(WORKERS, -2.0) if before is None else before
            if key in changes.keys:
                at = changes.keys.tolist().index(key)
                own = changes.kept[at] * own + changes.earned[at]
            had = changes.counts[changes.counted == key].sum() + 1e-9
            total, weight = total + had * own, weight + had
        values[key], until[key] = (total / weight if weight else np.full(WORKERS, -2.0)), hot_until
    return {key: (values[key], until[key]) for key in values}


@given(st.data())
def test_whatever_happens_to_tasks_and_reports_every_micro_batch_is_learned_once_at_most(tmp_path_factory, data):
    """Micro-batches run ahead of the loop; attempts are repeated, messages lost, reports lost, late or repeated."""
    loop = loop_at(tmp_path_factory.mktemp("model"))
    plain, merged, waiting, run, attempt = {}, set(), [], 0, 0
    for batch in range(data.draw(st.integers(1, 6))):
        told = []
        for number in range(data.draw(st.integers(1, 3))):
            keys = data.draw(st.lists(st.integers(0, 5), max_size=40))
            for _ in range(data.draw(st.sampled_from([1, 1, 2]))):
                attempt += 1
                told.append(task(loop.file, data.draw(st.permutations(keys)), batch, number, attempt))
        # Spark tells of it later, whole, without some messages, or never.
        waiting.append((batch, [each for each in told if data.draw(st.integers(0, 9)) > 0]))
        if data.draw(st.integers(0, 9)) == 0:
            waiting.pop()
        while waiting and data.draw(st.booleans()):
            which, messages = waiting[0] if data.draw(st.integers(0, 4)) == 0 else waiting.pop(0)
            loop.hear(report(data.draw(st.permutations(messages)), which, run=f"r{run}"))
            last = {each.task: each for each in sorted(messages, key=lambda each: each.attempt)}
            if last and which not in merged:
                through = [Message.of(each.text(loads=True)) for each in last.values()]  # which rounds
                plain = plain_round(plain, through, len(merged))
                merged.add(which)
            assert loop.table.version == len(merged)
            common = loop.table.common
            assert dict(zip(common.keys.tolist(), common.until.tolist(), strict=True)) == {
                key: until for key, (_, until) in plain.items()
            }
            for key, values in zip(common.keys.tolist(), common.values, strict=True):
                np.testing.assert_allclose(values, plain[key][0], atol=1e-5)
        if data.draw(st.integers(0, 4)) == 0:  # the query is started again, from the micro-batch that was done last
            loop.end(f"r{run}", "q")
            run += 1


def many(keys, workers):
    chance = np.random.default_rng(1)
    names, counts = np.arange(keys), np.arange(keys)[::-1].copy()
    kept = chance.uniform(0, 1, (keys, workers))
    return Changes(names, kept, -kept, names, counts, 1_000_000, np.arange(workers))


@pytest.mark.parametrize(("keys", "workers"), [(5, 4), (640, 64), (5000, 512)])
def test_a_message_is_of_bounded_size_and_has_the_most_frequent_keys(keys, workers):
    changes = many(keys, workers)
    text = Message(3, 4, 5, 6, changes).text(loads=True)
    assert len(text) <= 1 << 15
    back = Message.of(text)
    assert (back.version, back.batch, back.task, back.attempt, back.changes.tuples) == (3, 4, 5, 6, 1_000_000)
    assert back.changes.loads.tolist() == list(range(workers))
    had = len(back.changes.keys)
    assert back.changes.keys.tolist() == list(range(had))
    assert len(back.changes.counted) >= had
    np.testing.assert_allclose(back.changes.kept, changes.kept[:had], atol=1e-4)
    np.testing.assert_allclose(back.changes.earned, changes.earned[:had], atol=1e-4)
    if keys == 5:
        assert had == 5
    assert "loads" not in Message(3, 4, 5, 6, changes).text(loads=False)


def test_a_table_is_of_bounded_size_and_has_the_most_frequent_keys(tmp_path):
    keys, workers = 1000, 64
    chance, counts = np.random.default_rng(1), np.arange(1000)
    values, holders = chance.uniform(-2, 0, (keys, workers)), chance.integers(0, 9, (keys, workers))
    shared = Broadcast(
        np.arange(keys), values, counts + 5, 9999, 0.0, np.arange(workers), holders, counts=counts, partitioners=7
    )
    file = TableFile(f"file://{tmp_path}", "1f3a", length=1 << 16)
    file.put(Table(12, shared), "q")
    assert (tmp_path / file.name).stat().st_size <= 1 << 16
    there = file.get()
    had = there.common.keys
    assert 60 < len(had) < keys
    assert had.tolist() == list(range(keys - 1, keys - 1 - len(had), -1))
    np.testing.assert_allclose(there.common.values, values[had], atol=1e-6)
    np.testing.assert_array_equal(there.common.holders, holders[had])
    assert (there.version, there.common.load, there.common.partitioners) == (12, 9999, 7)
    assert there.common.until.tolist() == (counts[had] + 5).tolist()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:40],
        lambda text: text.replace('"version"', '"versions"'),
        lambda text: text.replace('"workers": 4', '"workers": 3'),
        lambda text: text.replace("1f3a", "0000"),
        lambda text: text.replace('"format": 1', '"format": 9'),
        lambda text: "",
    ],
)
def test_a_damaged_table_is_refused_in_words(tmp_path, damage):
    loop = loop_at(tmp_path)
    loop.hear(report([task(loop.file, KEYS)]))
    path = tmp_path / loop.file.name
    path.write_text(damage(path.read_text()))
    remedy = r"is damaged \(.*\); call agg\(\.\.\.\) or repartition\(\) again"
    with pytest.raises(SkewlessError, match=rf"the Q-table at {path} {remedy}"):
        loop.file.get()
    path.unlink()
    with pytest.raises(SkewlessError, match=rf"the Q-table at {path} is gone; call agg"):
        loop.file.get()
