"""Everything that knows Spark: the session, the policy file, routing and the learning loop."""
