# PYTHON is the interpreter that the environment is made with, VENV where it is made,
# DJANGO a requirement for Django where not the newest is wanted.
PYTHON ?= python3
VENV ?= .venv
DJANGO ?= Django
PORT ?= 8000
PYTEST_ARGS ?=
# Inputs that `make fuzz` damages and reads, and the seconds of `make soak`. FUZZ_ARGS may name
# folders with more PDFs (--also FOLDER) and the first input (--seed).
N ?= 10000
SECONDS ?= 600
FUZZ_ARGS ?=
SOAK_ARGS ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test check coverage install samples messages bench fuzz soak

install: $(INSTALLED)

$(INSTALLED): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; say which with: make PYTHON=python3.13 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' '$(DJANGO)'
	@touch $@

run: $(INSTALLED)
	$(BIN)/python manage.py migrate --verbosity 0
	$(BIN)/python manage.py create_demo_user
	$(BIN)/python manage.py extract_pdf example_project/samples/invoice.pdf
	@echo "Serving on http://127.0.0.1:$(PORT)/"
	PORT=$(PORT) exec $(BIN)/gunicorn --config example_project/gunicorn.conf.py

test: $(INSTALLED)
	PYTHONDEVMODE=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py
	$(BIN)/python manage.py check --fail-level WARNING

# Of what children do, too. Without what would measure the measuring.
coverage: $(INSTALLED)
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -p scripts.child_coverage --cov --cov-report= $(PYTEST_ARGS) \
		-k "not (sum and costly and pages) and not fifty_readers" tests/site tests/pool tests/documents tests/handle \
		tests/handle_values tests/streaming tests/sandbox tests/server tests/hostile/test_kinds.py
	$(BIN)/coverage combine --append --quiet
	$(BIN)/coverage report --show-missing --fail-under=98

samples: $(INSTALLED)
	$(BIN)/python -m scripts.make_samples

messages: $(INSTALLED)
	$(BIN)/python -m scripts.make_messages

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

fuzz: $(INSTALLED)
	$(BIN)/python -m scripts.fuzz --number $(N) $(FUZZ_ARGS)

soak: $(INSTALLED)
	$(BIN)/python -m scripts.soak --seconds $(SECONDS) $(SOAK_ARGS)
