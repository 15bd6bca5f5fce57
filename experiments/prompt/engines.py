"""The three engines of chapter 5 as profiles of the simulator."""

from __future__ import annotations

from dataclasses import replace

from experiments.prompt.setting import Setting
from skewless.simulate import Profile, Scheduling

SPARK, FLINK, STORM = "Spark", "Flink", "Storm"
ENGINES = (SPARK, FLINK, STORM)
UNSCHEDULED, STRAIGHT = "no scheduling", "tuples go straight to tasks"
PLACE = 0.5  # times the cost of a tuple, for putting it into blocks of the engine's memory
STEPS = 3  # operations that a reduce stage of Spark consists of
EVENT = 50e-6  # seconds for a control event
RESCALE = 2.0  # seconds for which continuous tasks stop, to be started in other numbers


def profile(name: str, setting: Setting) -> Profile:
    """An engine by its name; what its features cost is chosen, and only who has which is from the thesis."""
    if name == SPARK:
        return like_spark(setting, PLACE, STEPS)
    if name == FLINK:
        return Profile(FLINK, continuous=True, event=EVENT, rescale=RESCALE)
    return Profile(STORM, continuous=True, event=EVENT, rescale=None, recovers="batch")


def between(setting: Setting, cost: Scheduling) -> tuple[tuple[str, Profile, Scheduling], ...]:
    """From Spark to Flink, one feature more at a time."""
    spark, flink = profile(SPARK, setting), profile(FLINK, setting)
    placed = replace(spark, place=flink.place)
    return (
        (SPARK, spark, cost),
        (UNSCHEDULED, spark, scheduling(FLINK, cost)),
        (STRAIGHT, placed, scheduling(FLINK, cost)),
        ("reducing is one operation", replace(placed, steps=flink.steps), scheduling(FLINK, cost)),
        (f"micro-batches overlap: {FLINK}", flink, scheduling(FLINK, cost)),
    )


def like_spark(setting: Setting, place: float, steps: int) -> Profile:
    """Spark's profile if putting a tuple into a block costs so many times a tuple, and reducing takes so many steps."""
    return Profile(SPARK, place=place * setting.costs.tuple, steps=steps)


def scheduling(name: str, cost: Scheduling) -> Scheduling:
    """What an engine pays for a message: tasks that live on need none."""
    return cost if name == SPARK else Scheduling()


FEATURES = (
    (
        "in-memory data",
        "tuples are put into blocks first: half a tuple's cost, spread evenly",
        "tuples go straight to tasks",
        "tuples go straight to tasks",
    ),
    (
        "physical execution",
        "stages block; reducing takes three operations",
        "buffers block until a control event; micro-batches overlap; one operation",
        "micro-batches overlap; one operation",
    ),
    (
        "back-pressure",
        "not simulated: no source slows down",
        "not simulated: no source slows down",
        "not simulated: no source slows down",
    ),
    (
        "scheduling",
        "a message for each micro-batch, as measured; other numbers of tasks with the next one",
        "tasks live on; for other numbers all stop for 2 s",
        "tasks live on; their numbers stay",
    ),
    (
        "recovery",
        "the task that failed is run again",
        "the task that failed is run again",
        "the whole micro-batch is replayed",
    ),
)
