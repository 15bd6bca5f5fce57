"""`skewless run job.toml`: a job in a file, checked before Spark starts."""

from skewless.job.file import Job, Key, Sink, Source, Trigger, Window, read

__all__ = ["Job", "Key", "Sink", "Source", "Trigger", "Window", "read"]
