# `make` lists the targets. PYTHON picks the Python that .venv is made with: make PYTHON=python3.12 test
# SPARK picks another Spark than that of constraints.txt, its newest patch release: make SPARK=4.1 test

PYTHON ?= python3
SPARK ?=
ifndef SEED
SEED := $(shell date +%s)
endif

version := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ready := .venv/ready-$(version)$(SPARK:%=-spark-%)
learn := .venv/learn-$(version)$(SPARK:%=-spark-%)
docs := .venv/docs-$(version)$(SPARK:%=-spark-%)
pins := $(if $(SPARK),.venv/constraints.txt,constraints.txt)

# Spark starts its workers with this Python; without it, with the first python3 on the PATH.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python

# -c does not reach the packages that build others, as setuptools does pyspark; these do, in old and new pip.
$(ready) $(docs) $(learn): export PIP_CONSTRAINT := $(pins)
$(ready) $(docs) $(learn): export PIP_BUILD_CONSTRAINT := $(pins)
$(ready) $(docs) $(learn): export PIP_USE_PEP517 := 1

.PHONY: help test test-learn test-long fast soak lint docs bench bench-autoflow bench-blocks bench-batches bench-chop bench-costs bench-elastic bench-learn bench-nexmark bench-place bench-planning bench-route bench-shuffle bench-simulator bench-skew bench-sliding bench-spark bench-team bench-versions demo figures figures-full clean java compiling

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

pytest := .venv/bin/python -m pytest --hypothesis-seed=$(SEED)
by_file := -n 2 --dist loadfile --no-loadscope-reorder --durations 15

test: java lint | compiling  ## lint, then the tests and doctests of every change; installs into .venv what is missing
	@echo "New examples are explored from seed $(SEED); make test SEED=$(SEED) goes through the same ones."
	$(pytest) $(by_file) -m 'not long'

# A campaign is a test that goes on for as long as it is told: KILLS of queries, and TIMES as many examples as usual.
test-long: java $(ready) | compiling  ## what is left out of make test as too long for every change, and longer campaigns
	SKEWLESS_KILLS=8 SKEWLESS_TIMES=5 SKEWLESS_SEED=$(SEED) $(pytest) $(by_file) -m 'long or campaign'

test-learn: $(learn) | compiling  ## the tests of learning, which need the extra learn (jax); installs it
	SKEWLESS_LEARN=1 JAX_PLATFORMS=cpu $(pytest) -n 2 --dist worksteal tests/learn src/skewless/learn tests/test_docs_site.py

fast: $(ready) | compiling  ## the tests of the library that need no Spark, with fewer examples
	SKEWLESS_TIMES=0.2 $(pytest) -n 2 --dist worksteal -m 'not spark and not long and not slow' \
		--hypothesis-profile=fast --ignore tests/experiments --ignore tests/spark tests src

KILLS ?= 30
TIMES ?= 20
soak: java $(ready) | compiling  ## campaigns as long as you like: make soak KILLS=30 TIMES=20 SEED=7
	SKEWLESS_KILLS=$(KILLS) SKEWLESS_TIMES=$(TIMES) SKEWLESS_SEED=$(SEED) $(pytest) -v -m campaign

lint: $(ready)  ## ruff (also the format), mypy and the layers of the package
	.venv/bin/ruff check
	.venv/bin/ruff format --check --quiet
	.venv/bin/mypy
	.venv/bin/lint-imports

# Not with --quiet, which lets --strict pass over warnings. The variable stops a notice of the theme's authors: the theme
# gets fixes until May 2027, and its successor reads the same mkdocs.yml.
docs: $(docs)  ## build the documentation into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

demo: java $(ready) | compiling  ## a skewed clickstream through Spark's own windows and through skewless
	.venv/bin/skewless demo

bench: $(ready) | compiling  ## measure the speed of the routing kernels
	.venv/bin/python -m benchmarks.split

bench-autoflow: java $(ready) | compiling  ## measure AutoFlow's workloads on Spark, by worker (about 40 minutes)
	.venv/bin/python -m benchmarks.autoflow

bench-blocks: $(ready) | compiling  ## measure ways to divide a micro-batch by Prompt's costs
	.venv/bin/python -m benchmarks.blocks
	.venv/bin/python -m benchmarks.receivers

bench-planning: java $(ready) | compiling  ## measure what Prompt's planning takes inside tasks on Spark
	.venv/bin/python -m benchmarks.planning

bench-spark: java $(ready) | compiling  ## measure windows and memory on Spark (about 15 minutes)
	.venv/bin/python -m benchmarks.spark windows

bench-skew: java $(ready) | compiling  ## measure what skew costs in wall-clock time on Spark (about 10 minutes)
	.venv/bin/python -m benchmarks.spark skew

bench-place: java $(ready) | compiling  ## measure processors and moving state on Spark (about 20 minutes)
	.venv/bin/python -m benchmarks.spark place

bench-nexmark: java $(ready) | compiling  ## measure Nexmark's queries as streams beside Spark's own (about 25 minutes)
	.venv/bin/python -m benchmarks.spark nexmark

bench-shuffle: java $(ready) | compiling  ## ShuffleBench's case against Spark's own ways in Python (about 10 minutes)
	.venv/bin/python -m benchmarks.spark shuffle

bench-chop: java $(ready) | compiling  ## measure functions of whole windows and ways to cut time (about 20 minutes)
	.venv/bin/python -m benchmarks.spark chop

bench-elastic: java $(ready) | compiling  ## measure workers that follow the load (about 25 minutes)
	.venv/bin/python -m benchmarks.elastic

bench-batches: java $(ready) | compiling  ## measure what micro-batches of Spark cost whatever their rows
	.venv/bin/python -m benchmarks.micro_batches

bench-route: java $(ready) | compiling  ## measure what routing costs inside Spark
	.venv/bin/python -m benchmarks.route

bench-costs: java $(ready) | compiling  ## measure on Spark what the simulated figures charge (about 8 minutes)
	.venv/bin/python -m benchmarks.costs

bench-sliding: java $(ready) | compiling  ## measure sliding windows on Spark as their paper does (about 25 minutes)
	.venv/bin/python -m benchmarks.sliding

bench-team: java $(ready) | compiling  ## measure tasks that learn together, on Spark and without it
	.venv/bin/python -m benchmarks.team

bench-learn: $(learn) | compiling  ## measure how fast PartLy's environment and its training are
	JAX_PLATFORMS=cpu .venv/bin/python -m benchmarks.learn

bench-simulator: $(ready) | compiling  ## measure how fast one core simulates 10^8 tuples
	.venv/bin/python -m benchmarks.simulator

bench-versions: java $(ready) | compiling  ## compare the speed of another checkout: make bench-versions OLD=path
	@[ -n "$(OLD)" ] || { echo 'Which checkout? Say make bench-versions OLD=path, and ARGS="--rounds 1" for fewer rounds.'; exit 2; }
	.venv/bin/python -m benchmarks.versions "$(OLD)" $(ARGS)

figures: $(ready) | compiling  ## make the figures of the papers again, small: make figures FIG=dalton-9, or FIG=dalton
	.venv/bin/python -m experiments $(FIG)

figures-full: $(ready) | compiling  ## the same at the papers' sizes, or as near as one core comes
	.venv/bin/python -m experiments --full $(FIG)

clean:  ## delete .venv and everything that is made again by running
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	rm -rf spark-warehouse metastore_db derby.log
	find src tests benchmarks experiments examples tools -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@tools/check-java

compiling:
	@find src -name '*.nbi' | grep -q . || echo "The kernels are compiled at first use: this run takes about a minute more."

# Installed again only after a change of what to install. Another PYTHON or SPARK gets a new .venv.
$(ready): pyproject.toml constraints.txt
	@tools/check-python "$(PYTHON)"
	@[ -e $@ ] || "$(PYTHON)" -m venv --clear .venv
	@[ -z "$(SPARK)" ] || { grep -v '^pyspark==' constraints.txt; echo 'pyspark==$(SPARK).*'; } > $(pins)
	@echo "Installing into .venv with Python $(version): a few minutes the first time, as pyspark is large."
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -c $(pins) -e '.[dev]'
	@touch $@

$(docs): $(ready)
	@echo "Installing mkdocs into .venv."
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -c $(pins) -e '.[docs]'
	@touch $@

$(learn): $(ready)
	@echo "Installing jax, optax and gymnasium into .venv: about 600 MB."
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -c $(pins) -e '.[learn]'
	@touch $@
