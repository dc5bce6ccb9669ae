# Two commands do everything on a machine that has only Python 3.11 and make: `make demo`, `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-engines test-integrations check bench wheel fuzz matrix kills release pythons docs clean

setup: .venv/ready

.venv/ready: pyproject.toml paper/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./paper
	touch $@

demo: setup
	$(BIN)/transun demo

test: check
	$(BIN)/python -m pytest -n 2

# Spark (which needs Java 17), Ray, Dask, DuckDB and a local object store, in an environment of their own.
test-engines:
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e '.[dask,duckdb,lightgbm,ray,s3,spark]' boto3 hypothesis 'moto[server]' pytest xgboost-cpu
	.venv-engines/bin/python -m pytest tests/engines tests/data/test_object_store.py

# MLflow, TensorBoard, Weights & Biases, the Hugging Face hub and Optuna, in an environment of their own.
test-integrations:
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e '.[mlflow,tensorboard,torchmetrics,wandb]' huggingface_hub hypothesis optuna pytest
	.venv-integrations/bin/python -m pytest tests/integrations

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site in docs/_build/html: every example is run, a warning or a broken link is an error.
docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

bench: setup
	for script in $(filter-out benchmarks/bench_gpu%,$(wildcard benchmarks/bench_*.py)); do $(BIN)/python $$script || exit 1; done
	$(BIN)/python benchmarks/page.py

wheel: setup
	$(BIN)/python tools/check_wheel.py

# The files of a release in dist/, checked and run; nothing is uploaded.
release: .venv/release
	$(BIN)/python tools/release.py
	$(BIN)/python tools/check_wheel.py dist/*.whl

# The tests under every Python version of this machine; each takes an environment with its own torch.
pythons: .venv/release
	$(BIN)/nox

.venv/release: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	touch $@

# Hostile files, folders, texts, frames and command lines; another SEED gives other cases.
SEED ?= 0
CASES ?= 10000
fuzz: setup
	TRANSUN_FUZZ_CASES=$(CASES) $(BIN)/python -m pytest -n 2 tests/fuzz --hypothesis-seed=$(SEED)

# The quick tests under other threads, time zones, locales, instruction sets and orders.
matrix: setup
	$(BIN)/python tools/matrix.py

# Trainings and reproductions that are killed at random moments, and resumed.
KILLS ?= 50
REPRODUCTIONS ?= 5
kills: setup
	$(BIN)/python tools/kills.py --kills $(KILLS) --reproductions $(REPRODUCTIONS) --seed $(SEED)

clean:
	rm -rf .venv .venv-engines .venv-integrations build dist .mypy_cache .pytest_cache .ruff_cache
