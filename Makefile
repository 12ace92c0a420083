# Darkroom's commands. Each sets up what it needs under .darkroom/ and build/; nothing is installed elsewhere.
SHELL := /bin/sh
.DEFAULT_GOAL := help

DEV := .darkroom/venvs/dev/bin
PHOTO ?= tests/photos/seeding-16mp.jpg
export PYTHONPATH := scripts:cli:layers/core:.
# Bytecode stays out of the source folders, and environments start faster the second time.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.darkroom/bytecode
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Create the environments (all other commands do this themselves)
	@scripts/setup/environments.sh

# ── Using it ──────────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: run demo
run: ## Start the whole system on this machine, develop PHOTO, and keep serving until Ctrl-C (SET="NAME=VALUE …": parameters)
	@exec ./darkroom local up --develop $(PHOTO) $(SET:%=--set %)

demo: ## The same, but stop after the photo; exits non-zero if a step failed
	@exec ./darkroom local up --develop $(PHOTO) --then-exit $(SET:%=--set %)

.PHONY: invoke
invoke: ## sam local invoke FN=<function> with its sample event, against the running local stack
	@exec ./darkroom local invoke $(FN)

# ── Testing it ────────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: test test-all test-rest
test: setup ## The tiers that a change needs: unit, engine, contract, simulation, smoke, page, in their short form; 8 to 12 minutes
	@exec $(DEV)/python -m checks.test_tiers

test-all: setup ## Every tier in its long form, including removed guards and the emulator's own tests; 50 minutes
	@exec $(DEV)/python -m checks.test_tiers --all

test-rest: setup ## What test-all runs and test does not
	@exec $(DEV)/python -m checks.test_tiers --rest

TIERS := unit engine contract simulation smoke page benchmarks guards emulator invoke local
.PHONY: $(TIERS:%=test-%)
$(TIERS:%=test-%): setup
	@exec $(DEV)/python -m checks.test_tiers $(@:test-%=%)

test-unit: ## Decisions and operations, on fakes
test-engine: ## Golden pictures, hostile files, a short fuzz run, the same bytes in many processes (LONG=1: all of them)
test-contract: ## Fakes and adapters against one contract suite; the handlers over moto
test-simulation: ## Crashes and duplicates, with the real operations (LONG=1: the long form)
test-smoke: ## The product on one embedded stack
test-page: ## The page in a real Chromium, on one embedded stack (LONG=1: every screen and flow)
test-benchmarks: ## Every program that measures, in its shortest form; what it counts is what docs/benchmarks.md says
test-guards: ## Each guard removed from a copy: a test must turn red
test-emulator: ## What the embedded AWS corrects and refuses (skipped while it is unchanged)
test-invoke: ## sam local invoke of every function (needs a Docker engine)
test-local: ## Whole stacks: start and stop, redeployment, permissions, failures, chaos, days that pass in seconds

# ── Measuring it: tables, build/reports/<name>.json, a last line that counts the goals; SHORT=1: only shows that it works ──
.PHONY: bench-engine bench-delay bench-api bench-cold bench-calls bench-reads bench-memory bench-local bench-webhooks bench-sweeper bench-scale bench-costs bench-page bench-delivery bench-attention bench-best bench-imports bench-peers fuzz fuzz-api prove
bench-engine: ## The engine's CPU time, quality and memory next to Pillow, pyvips and sharp (LONG=1: more rounds; CHART=1: draw; PHOTOS=folder: your photos instead of the free ones; PHOTOS=none; WEBP=1: what WebP's methods cost and give; BASE=<commit>: J3 and J4 beside an earlier commit's)
	@scripts/setup/environments.sh bench
	@exec .darkroom/venvs/bench/bin/python -m benchmarks.engine $(if $(CHART),--chart) $(if $(WEBP),--webp) $(if $(PHOTOS),--photos $(PHOTOS)) $(if $(BASE),--base $(BASE))

bench-delay: setup ## The cost of delays: counted requests at list prices, next to other ways to wait (LONG=1: a million per load)
	@exec $(DEV)/python -m benchmarks.delay

bench-api: setup ## The latency of POST /images: our own time, the SDK's, the wait for AWS (BASE=<commit>: beside an earlier commit's; LONG=1: more requests)
	@exec $(DEV)/python -m benchmarks.api $(if $(BASE),--base $(BASE))

bench-cold: setup ## Cold starts: each function's initialisation and a cold POST (BASE=<commit>: beside an earlier commit's)
	@exec $(DEV)/python -m benchmarks.cold $(if $(BASE),--base $(BASE))

bench-reads: setup ## An hour of the dearest reads that a free key may send, in dollars
	@exec $(DEV)/python -m benchmarks.reads

bench-calls: setup ## The calls to AWS and their prices: for an upload, a status, a worker, an idle sweep
	@exec $(DEV)/python -m benchmarks.calls

bench-memory: setup ## The worker at five sizes of memory: milliseconds, dollars, its peak, its own CPU time (LONG=1: more rounds; BASE=<commit>: its own code beside an earlier commit's)
	@exec $(DEV)/python -m benchmarks.memory $(if $(BASE),--base $(BASE))

bench-local: setup ## The local stack: its start, photos one by one and many at once, its rest (BASE=<commit>: beside an earlier commit's)
	@exec $(DEV)/python -m benchmarks.local $(if $(BASE),--base $(BASE))

bench-webhooks: setup ## Webhooks in virtual time: two receivers that do not answer beside 48, an outage, dollars (LONG=1: more loads)
	@exec $(DEV)/python -m benchmarks.webhooks

bench-sweeper: setup ## The sweeper in virtual time: rescues behind a pile and after an outage, removals, its memory, its idle bill (LONG=1: three seeds)
	@exec $(DEV)/python -m benchmarks.sweeper

bench-scale: setup ## The whole path in virtual time: bursts, hours at 1,000 a second, AWS's ramps and quotas; what saturates first
	@exec $(DEV)/python -m benchmarks.scale

bench-costs: setup ## A month's bill at three loads beside other ways, and what an image calls, writes and logs, beside what capacity says
	@exec $(DEV)/python -m benchmarks.costs

bench-page: setup ## The page in Chromium on the local stack: first load, interactive, a picture after `done`, a scroll over 5,000 images
	@exec $(DEV)/python -m benchmarks.page

bench-delivery: setup ## 10,000 requests for 1,000 public variants through the local edge: its hits, the origin's calls, dollars per million views beside other ways
	@exec $(DEV)/python -m benchmarks.delivery

bench-attention: setup ## Crops by attention: what they keep of the subjects of free photographs, beside crops of the middle
	@exec $(DEV)/python -m benchmarks.attention

bench-imports: setup ## A manifest of a million rows: the processor's time for each row, the memory, and the calls of an image that it makes
	@exec $(DEV)/python -m benchmarks.imports

bench-peers: setup ## Beside BullMQ with sharp, Celery with Pillow and a plain sharp handler: adding a job, CPU per image, SIGKILL to workers and broker (REDIS=server: it instead of Valkey)
	@scripts/setup/environments.sh peers node
	@exec $(DEV)/python -m benchmarks.peers

bench-best: ## Format best: the scores of its three formats beside each other, what it saves, what it takes (CALIBRATE=1: print its table)
	@scripts/setup/environments.sh bench
	@exec .darkroom/venvs/bench/bin/python -m benchmarks.best $(if $(CALIBRATE),--calibrate)

.PHONY: described documented
described: setup ## Write anew what is kept: openapi.json from the table of routes, the tests of each guarantee from their marks
	@$(DEV)/python -m repository.openapi.kept
	@exec $(DEV)/python -m tests.guards.promises

documented: ## Put the counted figures of the last reports into docs/benchmarks.md (PROGRAMS="calls delay …")
	@exec $(DEV)/python -m benchmarks.documented $(PROGRAMS)

fuzz: setup ## Damaged and hostile files through the engine, with limited memory (LONG=1: the published count)
	@exec $(DEV)/python -m tests.fuzz

fuzz-api: setup ## Requests of every kind to the API; compares each answer with openapi.json (LONG=1: the published count)
	@exec $(DEV)/python -m tests.fuzz.api

prove: setup ## The long forms, 25 minutes: crashes at calls and pairs of calls, random histories, killed processes, poison, removed guards (PART=chaos: only that; LONG=1: the published counts, every pair and guard)
	@exec $(DEV)/python -m tests.prove $(PART)

# ── Showing it ────────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: screenshots
screenshots: setup ## Take the README's pictures of the page, with Chromium and the local stack: docs/images/page-*.webp
	@exec $(DEV)/python -m tests.page.screenshots

# ── Checking it ───────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: check check-types check-rest check-init
check: setup ## Format, lint, types, import contracts, templates
	@$(MAKE) --no-print-directory --jobs=2 check-types check-rest

check-types:
	$(DEV)/mypy
	@scripts/setup/environments.sh node
	$(DEV)/python -m checks.page_types

check-rest:
	$(DEV)/ruff format --check .
	$(DEV)/ruff check .
	$(DEV)/lint-imports --no-cache
	@mkdir -p build
	$(DEV)/python -m repository.expand_template > build/template.expanded.json
	$(DEV)/python -m repository.expand_template template.yaml PublishedVersions > build/template.snapshots.json
	$(DEV)/cfn-lint --non-zero-exit-code warning -- template.yaml extensions/observability.yaml extensions/delivery.yaml build/template.expanded.json build/template.snapshots.json edge.yaml
	@scripts/checks/sam_validate.sh

check-init: setup ## Initialise every built function from its own bundle alone; report the time it takes
	@exec $(DEV)/python -m checks.initialise_functions --runs 5 --report build/reports/init.json

.PHONY: format
format: setup ## Format, and fix what can be fixed automatically
	$(DEV)/ruff check --fix .
	$(DEV)/ruff format .

.PHONY: lock
lock: ## Pin every dependency again from pyproject.toml (UPGRADE=1: upgrade all)
	@scripts/setup/environments.sh --uv
	@UV=.darkroom/venvs/uv/bin/uv UPGRADE=$(UPGRADE) scripts/setup/lock.sh

.PHONY: outdated
outdated: setup ## What is newer on the package index, and which libraries to compare with advisories (RELEASE=1: fail if one is due)
	@scripts/setup/environments.sh --uv
	@scripts/setup/environments.sh audit || true
	@exec $(DEV)/python -m checks.outdated $(if $(RELEASE),--release)

.PHONY: clean
clean: ## Remove build results; the environments stay
	rm -rf build .darkroom/build .darkroom/run .mypy_cache .ruff_cache
