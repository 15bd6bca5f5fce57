"""PartLy's figures: partitioning quality, what training and planning cost, and throughput."""
