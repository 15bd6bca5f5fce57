"""What runs inside a task, without Spark: workers that keep state, and what sends rows to them."""
