GO ?= go
BIN := bin/auditd
FUZZTIME ?= 20
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help run serve build test check deps golden bench quality baseline fuzz integration agents agents-all plugin browser train-smoke clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

run: build ## Start the daemon, show a benign and a poisoned web page, explain, stop; then the demo
	@scripts/demo.sh $(BIN)
	@$(BIN) demo

serve: build ## Start the daemon and leave it running
	@$(BIN) serve

build: deps ## Build bin/auditd
	@mkdir -p bin
	@$(GO) build -o $(BIN) ./cmd/auditd

test: deps check ## Run every test
	$(GO) test ./...

check: ## Check formatting and run go vet
	@out=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	if [ -n "$$out" ]; then echo "not formatted:" >&2; echo "$$out" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags 'integration agents' ./...

deps: ## Fetch what is missing, pinned and checked: modules, ONNX Runtime
	@command -v gcc >/dev/null || { echo "gcc is needed: apt-get install gcc libc6-dev" >&2; exit 1; }
	@command -v bwrap >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap; } >/dev/null; } || \
		{ echo "bubblewrap is needed: apt-get install bubblewrap" >&2; exit 1; }
	@$(GO) mod download
	@scripts/onnxruntime.sh >/dev/null

golden: ## Rewrite golden files after a change that is meant
	$(GO) test ./schema ./httpapi ./cmd/auditd -update
	$(GO) test ./prompts -update

bench: build ## Measure latency and the packages' benchmarks
	$(BIN) bench latency
	$(GO) test -run '^$$' -bench . -benchmem ./precheck/... ./firewall ./auditlog ./inference/onnx/...

quality: build ## Hold quality to the committed baseline, and render the report
	$(BIN) bench quality --quick --fresh -o build/quality >/dev/null
	$(BIN) bench diff bench/baseline.json build/quality/report.json
	scripts/render.sh build/quality/report.html build/quality

baseline: build ## Write the baseline anew after a change that is meant
	$(BIN) bench quality --quick --baseline bench/baseline.json

fuzz: ## Fuzz every target for FUZZTIME seconds
	@scripts/fuzz.sh $(FUZZTIME)

integration: build ## Test against a real Ollama server with a real small model
	scripts/testmodel.sh scripts/integration.sh $(BIN)

agents: ## Test against the real agents, offline, with scripted models
	scripts/agents.sh $(GO) test -tags agents -run 'Claude|OpenClaw' -count 1 -timeout 44m ./plugins/openclaw ./cmd/auditd

agents-all: ## Play all of the isolation benchmark's cases through the real OpenClaw
	AUDITD_TEST_ALL=1 scripts/agents.sh $(GO) test -tags agents -run 'OpenClawIsolation|OpenClawWithoutIsolation' -count 1 -timeout 90m -v ./cmd/auditd

plugin: ## Compile OpenClaw's plugin after a change to its source
	cd plugins/openclaw && ../../scripts/agents.sh sh -c '"$$AUDITD_TEST_NODE" "$$AUDITD_TEST_TSC" -p . --typeRoots "$$(dirname "$$AUDITD_TEST_TSC")/../../@types"'

browser: deps ## Test the page in a real Chromium, and its accessibility
	@scripts/browser.sh

train-smoke: .venv/ready ## Train, export and check a tiny model (a minute)
	.venv/bin/python -m training smoke --out build/smoke
	.venv/bin/python -m pytest -q training/tests

.venv/ready: training/requirements.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r training/requirements.txt
	.venv/bin/python training/cpu_torch.py
	@touch $@

clean: ## Remove what was built here
	rm -rf bin build .venv
