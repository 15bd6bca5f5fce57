"""AutoFlow's figures: latency and throughput of each reducer under hot spots that stay, come suddenly, and wander."""
