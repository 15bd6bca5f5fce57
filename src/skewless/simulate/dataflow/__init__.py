"""State that moves while rows flow: AutoFlow's protocol as printed, a global barrier, and what skewless does."""

from skewless.simulate.dataflow.announced import Batching, announced
from skewless.simulate.dataflow.engine import Network, flow
from skewless.simulate.dataflow.mapper import Mapper
from skewless.simulate.dataflow.message import Control, Row, State
from skewless.simulate.dataflow.reducer import Reducer
from skewless.simulate.dataflow.result import Flow, Moved, Stream
from skewless.simulate.dataflow.scheduler import HotSpots, Instruction, Scheduler

__all__ = [
    "Batching",
    "Control",
    "Flow",
    "HotSpots",
    "Instruction",
    "Mapper",
    "Moved",
    "Network",
    "Reducer",
    "Row",
    "Scheduler",
    "State",
    "Stream",
    "announced",
    "flow",
]
