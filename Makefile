# The first two are for everybody; `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# Packages whose tests need the machine for themselves are not told apart: two
# at a time suit the smallest machine that this runs on.
TESTFLAGS ?= -race -shuffle=on -timeout 12m

.PHONY: demo
demo: setup ## Watch a request become a pull request, without any account
	@go run ./cmd/ship demo

.PHONY: test
test: check ## Set everything up and run all checks and tests

.PHONY: check
check: setup ## Exactly what CI runs
	@./.ci/check
	go test $(TESTFLAGS) ./...

.PHONY: setup
setup: ## Install what is missing, and say what
	@./.ci/setup

.PHONY: build
build: ## Build bin/ship
	CGO_ENABLED=0 go build -trimpath -o bin/ship ./cmd/ship

.PHONY: generate
generate: ## Generate code anew
	go generate ./...

.PHONY: bench
bench: setup ## Benchmarks of the intake, beside a bare handler in the same run
	go test -run '^$$' -bench . -benchmem ./integrations/github ./session/redis ./cmd/ship

SEEDS ?= 20
.PHONY: chaos
chaos: setup ## Real turns in boxes that fail; the last line sums up (SEEDS=200)
	@set -o pipefail; SHIP_TEST_CHAOS_SEEDS=$(SEEDS) go test -count 1 -run '^TestChaos$$' -v -timeout 6h ./cmd/ship | \
		awk '/: chaos: / { sum = $$0; sub(/.*: chaos: /, "chaos: ", sum) } { print } END { print sum }'

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## Fuzz every parser of outside input (FUZZTIME=5m)
	@./.ci/fuzz $(FUZZTIME)

.PHONY: help
help: ## This list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
