"""What everything else stands on: arrays, hashes, windows, counts, policies, and state as blobs."""
