"""Word count: how often each word is in the tweets of the last 60 s, every second.

It is the application that most of Dalton's evaluation runs. Texts are split into words inside the query, so the words
are the keys, and the most frequent one is every tenth word. The script counts twice. With `split="bounded"` rows travel
to workers, all of which get about the same number. With `split="auto"` what a row costs decides: a count costs less
than moving a row, so rows are counted where they lie. The counts are the same. The script prints what ran, and the
most frequent words of the last window.

    python examples/word_count.py

Reference
---------
E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 16(3), 2022, 5.
"""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta, timezone

from micro_batches import stream, write
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import skewless as sk
from skewless.workload import TweetWords, Words

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
TWEETS = "text string, ts timestamp"
WORDS_PER_TWEET = 8
TOP = 0.1

Tweet = tuple[str, datetime]


def counts(tweets: DataFrame, split: str) -> DataFrame:
    """A row for each window and word, once no tweet of the window can come any more."""
    words = tweets.select("ts", F.explode(F.split("text", " ")).alias("word"))
    windows = sk.keyed(words, "word", workers=4, split=split, name="words").window(
        "ts", size="60 seconds", slide="1 second", watermark="5 seconds"
    )
    return windows.agg(n=sk.count())


def make_tweets(batches: int = 3, rows: int = 200, words: int = 400, seed: int = 1) -> list[list[Tweet]]:
    """Thirty seconds of tweets for each micro-batch; the most frequent of their words has the share `TOP`."""
    vocabulary = Words(vocabulary_size=words, seed=seed).vocabulary
    numbers = TweetWords(words, TOP, seed).take(batches * rows * WORDS_PER_TWEET).reshape(batches, rows, -1)
    return [
        [
            (" ".join(vocabulary[number] for number in tweet), START + timedelta(seconds=30) * (batch + i / rows))
            for i, tweet in enumerate(tweets.tolist())
        ]
        for batch, tweets in enumerate(numbers)
    ]


def main() -> None:
    """Make some tweets, and count their words with two splits."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        batches = make_tweets()
        write(f"{folder}/tweets", TWEETS, batches)
        for split in ("bounded", "auto"):
            query = (
                counts(stream(spark, f"{folder}/tweets", TWEETS), split)
                .writeStream.format("parquet")
                .option("checkpointLocation", f"{folder}/{split}/checkpoint")
                .trigger(availableNow=True)
                .start(f"{folder}/{split}/counts")
            )
            query.awaitTermination()
            watching = sk.watch(query)
            watching.wait(len(batches))  # until the loop has learned from all of them, which never holds up the query
            print(watching)
        bounded, auto = (spark.read.parquet(f"{folder}/{split}/counts") for split in ("bounded", "auto"))
        alone = bounded.union(auto).groupBy("window", "word", "n").count().where("count != 2").count()
        print(f"{bounded.count()} counts, {alone} of them by one split only; the last window starts with")
        bounded.orderBy("window", "n", "word", ascending=False).show(8, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
