# Darkroom's commands. Everything sets up what it needs under .darkroom/ and build/; nothing is installed elsewhere.
SHELL := /bin/sh
.DEFAULT_GOAL := help

DEV := .darkroom/venvs/dev/bin
PHOTO ?= tests/photos/seeding-16mp.jpg
export PYTHONPATH := tools:layers/core:.
# Bytecode stays out of the source folders, and an environment that is used twice starts faster.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.darkroom/bytecode
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## What there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Make the environments (all other commands do it by themselves)
	@tools/setup/environments.sh

# ── Using it ──────────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: run demo
run: ## Start the whole system on this machine, develop PHOTO, and keep serving until Ctrl-C
	@exec ./darkroom local up --develop $(PHOTO)

demo: ## The same, but stop after the photo; non-zero if any step failed
	@exec ./darkroom local up --develop $(PHOTO) --then-exit

.PHONY: invoke
invoke: ## sam local invoke FN=<function> with its sample event, against the running local stack
	@exec ./darkroom local invoke $(FN)

# ── Testing it ────────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: test test-all test-rest
test: setup ## The tiers that a change needs: unit, engine, contract, simulation, smoke, in their short form; 8 minutes
	@exec $(DEV)/python -m checks.test_tiers

test-all: setup ## Every tier in its long form, removed guards and the emulator's own tests too; half an hour
	@exec $(DEV)/python -m checks.test_tiers --all

test-rest: setup ## What test-all has and test has not
	@exec $(DEV)/python -m checks.test_tiers --rest

TIERS := unit engine contract simulation smoke guards emulator invoke local
.PHONY: $(TIERS:%=test-%)
$(TIERS:%=test-%): setup
	@exec $(DEV)/python -m checks.test_tiers $(@:test-%=%)

test-unit: ## Decisions and operations, on fakes
test-engine: ## Golden pictures, hostile files, a short fuzz run, the same bytes in a hundred processes
test-contract: ## Fakes and adapters by one contract; the handlers over moto
test-simulation: ## Crashes and duplicates, by the real operations (LONG=1: the long form)
test-smoke: ## The product on one embedded stack
test-guards: ## Each guard taken out of a copy: a test must turn red
test-emulator: ## What the embedded AWS corrects and refuses (not run again while it is unchanged)
test-invoke: ## sam local invoke of every function (needs a Docker engine)
test-local: ## Whole stacks: their lives, redeployment, permissions, failures, chaos, days that pass in seconds

# ── Measuring it: tables, build/reports/<name>.json, and a last line that counts the goals ───────────────────────────
.PHONY: bench-engine bench-delay bench-api bench-load-shedding fuzz fuzz-api prove
bench-engine: ## The engine's CPU time, quality and memory beside Pillow, pyvips and sharp (LONG=1: more rounds; CHART=1: draw; PHOTOS=folder)
	@tools/setup/environments.sh bench
	@exec .darkroom/venvs/bench/bin/python -m benchmarks.engine $(if $(CHART),--chart) $(if $(PHOTOS),--photos $(PHOTOS))

bench-delay: setup ## What delays cost: counted requests at list prices, beside other ways to wait (LONG=1: a million of every load)
	@exec $(DEV)/python -m benchmarks.delay

bench-api: setup ## What POST /images takes: our own time, the SDK's, the wait for AWS; and cold functions (LONG=1: more requests)
	@exec $(DEV)/python -m benchmarks.api

bench-load-shedding: setup ## What full lanes and noisy tenants do to whom: bursts and neighbours on the local stack, 30 minutes
	@exec $(DEV)/python -m benchmarks.load_shedding

fuzz: setup ## Damaged and hostile files through the engine, in processes with little memory (LONG=1: the published count)
	@exec $(DEV)/python -m proof.fuzz

fuzz-api: setup ## Requests of every kind to the API, each answer compared with openapi.json (LONG=1: the published count)
	@exec $(DEV)/python -m proof.fuzz_api

prove: setup ## The proof in 25 minutes: crashes at calls and pairs of calls, random histories, killed processes, poison, removed guards (PART=chaos: one of them; LONG=1: the published counts, every pair and guard)
	@exec $(DEV)/python -m proof $(PART)

# ── Checking it ───────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: check check-init
check: setup ## Format, lint, types, import contracts, templates
	$(DEV)/ruff format --check .
	$(DEV)/ruff check .
	$(DEV)/mypy
	$(DEV)/lint-imports --no-cache
	@mkdir -p build
	$(DEV)/python -m checks.expand_template > build/template.expanded.json
	$(DEV)/cfn-lint --non-zero-exit-code warning -- template.yaml build/template.expanded.json
	@tools/checks/sam_validate.sh

check-init: setup ## Initialise every built function from its own bundle alone; reports the time it takes
	@exec $(DEV)/python -m checks.initialise_functions --runs 5 --report build/reports/init.json

.PHONY: format
format: setup ## Format and mend what can be mended
	$(DEV)/ruff check --fix .
	$(DEV)/ruff format .

.PHONY: lock
lock: ## Pin every dependency anew from pyproject.toml (UPGRADE=1 moves all)
	@tools/setup/environments.sh --uv
	@UV=.darkroom/venvs/uv/bin/uv UPGRADE=$(UPGRADE) tools/setup/lock.sh

.PHONY: clean
clean: ## Remove what was built; the environments stay
	rm -rf build .darkroom/build .darkroom/run .mypy_cache .ruff_cache
