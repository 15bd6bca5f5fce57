"""The demo: a skewed clickstream through Spark's own windows and through skewless, side by side."""
