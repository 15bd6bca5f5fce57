"""What runs on the driver, without Spark: the loops that learn from every micro-batch, and a query's durable folder."""
