"""PartLy's school: an environment in which a micro-batch is an episode, and the training of a policy in it.

It needs the extra `learn` (jax, optax, gymnasium). A trained policy does not: `skewless.split.PartLy` runs it.
"""

from __future__ import annotations

from importlib.util import find_spec

from skewless.core.errors import SkewlessError

missing = [name for name in ("jax", "optax", "gymnasium") if find_spec(name) is None]
if missing:
    raise SkewlessError(f"learning needs {', '.join(missing)}; install the extra: pip install 'skewless[learn]'")
