# Everything runs in .venv; setup makes it, or sees in a moment that nothing is missing.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv/bin/python
export PYTHONUTF8 = 1

.PHONY: run test test-all lab doctor bench clean lock lint setup job

run: setup            ## the main job, end to end
	@$(VENV) -m helpers.broker --lakehouse -- $(MAKE) --no-print-directory job

test: setup lint      ## the whole test suite
	@$(VENV) -m pytest -m "not slow" --durations=10

test-all: setup lint  ## and the soaks, the million rows, the repetitions
	@$(VENV) -m pytest --durations=10

lab: setup            ## JupyterLab on the notebooks
	@$(VENV) -m jupyterlab notebooks

doctor:               ## what is wrong with this machine, and what to type
	@if [ -x $(VENV) ]; then $(VENV) -m helpers.doctor; else $(or $(PYTHON),python3) -m helpers.doctor; fi

bench: setup          ## figures as JSON; NAME=session runs one
	@$(VENV) -m tests.bench $(NAME)

clean:                ## remove only what the project made
	@$(or $(PYTHON),python3) helpers/environment.py --clean

lint: setup
	@$(VENV) -m ruff check -q . && $(VENV) -m ruff format -q --check . && $(VENV) -m mypy

lock: setup           ## write requirements.lock anew after a change of pyproject.toml
	@$(VENV) -m pip install -q uv && $(VENV) -m uv pip compile pyproject.toml --extra dev --extra java --universal \
		--generate-hashes --no-emit-index-url --no-annotate --no-header -q -o requirements.lock

setup:
ifeq ($(PYTHON),)
	@echo "error: Python 3.11 to 3.14 is needed, python3 is $$(python3 -V 2>&1 || echo missing). Install one, or name one: make run PYTHON=/path/to/python3.12" >&2; exit 1
else
	@$(PYTHON) helpers/environment.py $(if $(filter command environment,$(firstword $(origin PYTHON))),--this-python)
endif

# called by `make run` with the broker up
job:
	@$(VENV) -m data_generator $(if $(MORE),--orders $(MORE),--orders 20 --if-empty)
	@$(VENV) -m helpers.pipeline run
