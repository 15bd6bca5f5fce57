"""AutoFlow's protocol, message by message: its Figures 3 and 4, and what the print leaves open."""

from __future__ import annotations

import pytest

from skewless.core.errors import SkewlessError
from skewless.simulate.dataflow import Control, Mapper, Reducer, Row, State
from skewless.simulate.dataflow.mapper import sent

TOP, MIDDLE, BOTTOM = range(3)


def test_figure_3_the_mapper_keeps_rows_of_the_moving_slot_from_channels_that_are_ahead() -> None:
    """Slot 3 moves from reducer 0 to reducer 1 by control message 8, which the uppermost channel delivers first."""
    mapper, move = Mapper(3, owners=[1, 0, 1, 0]), Control(8, sender=0, receiver=1, slots=(3,))
    ahead, behind, other = Row(3, 30, 1), Row(3, 31, 2), Row(1, 10, 3)

    assert sent(mapper, TOP, move, 2) == []  # (i)
    assert mapper.table == [1, 0, 1, 0]

    assert sent(mapper, TOP, ahead, 2) == []  # (ii)
    assert sent(mapper, MIDDLE, behind, 2) == [(0, behind)]  # as usual, as its channel has not delivered the message
    assert sent(mapper, TOP, other, 2) == [(0, other)]  # slots that stay are not kept
    assert mapper.kept == 1
    assert sent(mapper, MIDDLE, move, 2) == []

    assert sent(mapper, BOTTOM, move, 2) == [(0, move), (1, move), (1, ahead)]  # (iii)
    assert mapper.table == [1, 0, 1, 1]
    assert mapper.kept == 0
    assert sent(mapper, TOP, Row(3, 32, 4), 2) == [(1, Row(3, 32, 4))]


def test_an_empty_control_message_keeps_nothing_back() -> None:
    mapper = Mapper(2, owners=[0, 1])
    assert sent(mapper, 0, Control(1), 2) == []
    assert sent(mapper, 0, Row(1, 5, 1), 2) == [(1, Row(1, 5, 1))]
    assert sent(mapper, 1, Control(1), 2) == [(0, Control(1)), (1, Control(1))]


def test_figure_4_the_state_leaves_when_no_row_can_come_and_kept_rows_are_added_to_it() -> None:
    """Slot 1 moves from the left reducer to the right one by control message 6."""
    left, right = Reducer(0, 3, slots=[0, 1]), Reducer(1, 3, slots=[2])
    move = Control(6, sender=0, receiver=1, slots=(1,))

    assert left.control(TOP, move) is None  # (i)
    assert left.row(MIDDLE, Row(1, key=9, value=4))  # the middle channel is behind: the state changes as usual
    assert left.slots[1] == {9: 4}
    assert right.control(TOP, move) is None
    assert not right.row(TOP, Row(1, key=9, value=8))
    assert right.row(TOP, Row(2, key=7, value=1))  # others are added at once
    assert right.kept == 1

    assert left.control(MIDDLE, move) is None  # (ii)
    reached = left.control(BOTTOM, move)
    assert reached is not None
    assert reached.states == [State(6, 1, {9: 4}, receiver=1)]
    assert reached.counts == {1: 1}
    assert 1 not in left.slots

    for channel in (MIDDLE, BOTTOM):
        reached_right = right.control(channel, move)
    assert reached_right is not None
    assert reached_right.rows == []
    rows, onward = right.receive(reached.states[0])  # (iii)
    assert rows == [Row(1, key=9, value=8)]
    assert onward == []
    assert right.slots == {1: {9: 12}, 2: {7: 1}}
    assert right.kept == 0


def test_a_state_that_comes_before_the_barrier_waits_for_it() -> None:
    right, move = Reducer(1, 2, slots=[]), Control(6, sender=0, receiver=1, slots=(1,))
    right.control(0, move)
    right.row(0, Row(1, 9, 8))
    assert right.receive(State(6, 1, {9: 4}, 1)) == ([], [])
    reached = right.control(1, move)
    assert reached is not None
    assert [row.value for row in reached.rows] == [8]
    assert right.slots == {1: {9: 12}}


def test_a_slot_that_moves_on_before_its_state_came_is_passed_on() -> None:
    middle = Reducer(1, 1, slots=[])
    middle.control(0, Control(1, sender=0, receiver=1, slots=(4,)))
    assert not middle.row(0, Row(4, 9, 2))
    reached = middle.control(0, Control(2, sender=1, receiver=2, slots=(4,)))
    assert reached is not None
    assert reached.states == []
    rows, onward = middle.receive(State(1, 4, {9: 1}, 1))
    assert [row.value for row in rows] == [2]
    assert onward == [State(2, 4, {9: 3}, receiver=2)]
    assert middle.slots == {}


def test_the_state_of_a_slot_that_comes_back_leaves_with_the_message_that_sends_it_away() -> None:
    """One channel has delivered both messages before the other delivers the first."""
    reducer = Reducer(0, 2, slots=[4])
    away, back = Control(1, sender=0, receiver=1, slots=(4,)), Control(2, sender=1, receiver=0, slots=(4,))
    reducer.control(TOP, away)
    reducer.control(TOP, back)
    assert not reducer.row(TOP, Row(4, 9, 2))  # kept until it is back
    assert reducer.row(MIDDLE, Row(4, 9, 1))
    reached = reducer.control(MIDDLE, away)
    assert reached is not None
    assert reached.states == [State(1, 4, {9: 1}, receiver=1)]
    assert reducer.control(MIDDLE, back) is not None
    rows, onward = reducer.receive(State(2, 4, {9: 1}, receiver=0))
    assert ([row.value for row in rows], onward, reducer.slots) == ([2], [], {4: {9: 3}})


def test_rows_kept_for_two_moves_are_sent_each_by_its_own() -> None:
    mapper = Mapper(2, owners=[0])
    first, second = Control(1, 0, 1, (0,)), Control(2, 1, 2, (0,))
    mapper.control(0, first)
    mapper.row(0, Row(0, 9, 1))
    mapper.control(0, second)
    mapper.row(0, Row(0, 9, 2))
    assert sent(mapper, 1, first, 3)[-1] == (1, Row(0, 9, 1))
    assert sent(mapper, 1, second, 3)[-1] == (2, Row(0, 9, 2))


def test_rows_sent_before_the_message_as_line_18_is_printed_find_no_state() -> None:
    """Why the message goes first: the new owner does not know yet that the slot is to come."""
    right = Reducer(1, 1, slots=[])
    with pytest.raises(SkewlessError, match="slot 3, whose state it does not have"):
        right.row(0, Row(3, 30, 1))


def test_control_messages_out_of_order_are_refused() -> None:
    mapper = Mapper(1, owners=[0])
    mapper.control(0, Control(5))
    with pytest.raises(SkewlessError, match="delivered control message 4 after 5"):
        mapper.control(0, Control(4))
