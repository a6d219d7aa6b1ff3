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

# Both images are built in a folder with the program and nothing else.
.PHONY: image
image: build ## Container images: ship, and ship-box for boxes (docs/deploy.md)
	mkdir -p bin/image && cp bin/ship bin/image/ship
	docker build -t ship -f deploy/docker/Dockerfile bin/image
	docker build -t ship-box -f deploy/e2b/e2b.Dockerfile bin/image

.PHONY: template
template: build ## The template ship at E2B; needs npm and E2B_API_KEY
	mkdir -p bin/image && cp bin/ship deploy/e2b/e2b.Dockerfile bin/image/
	npx --yes @e2b/cli@2.19.0 template create ship --path bin/image --cpu-count 2 --memory-mb 4096

.PHONY: generate
generate: ## Generate code anew
	go generate ./...

.PHONY: bench
bench: setup ## Benchmarks of the intake, beside a bare handler in the same run
	@set -o pipefail; go test -v -run '^$$' -bench . -benchmem ./integrations/github ./session/redis ./cmd/ship | \
		awk '/the whole intake reaches/ { sum = $$0; sub(/.*the whole/, "bench: the whole", sum) } { print } END { print sum }'

.PHONY: load
load: setup ## Many sessions, bursts and kills, at the size that is promised; the last line sums up
	@set -o pipefail; SHIP_TEST_LOAD=1 go test -count 1 -p 1 -run '^TestLoad' -v -timeout 1h ./cmd/ship | \
		awk '/ LOAD / { text = $$0; sub(/.* LOAD /, "", text); said[n++] = text } /^ *--- FAIL/ { bad++ } !/"level":"INFO"/ { print } \
		END { for (i = 0; i < n; i++) print "  " said[i]; print "load: " n " measurements, " (bad ? bad " tests failed" : "all within their bounds") }'

SEEDS ?= 20
.PHONY: chaos
chaos: setup ## Real turns in boxes that fail; the last line sums up (SEEDS=200)
	@set -o pipefail; SHIP_TEST_CHAOS_SEEDS=$(SEEDS) go test -count 1 -run '^TestChaos$$' -v -timeout 6h ./cmd/ship | \
		awk '/: chaos: / { sum = $$0; sub(/.*: chaos: /, "chaos: ", sum) } { print } END { print sum }'

LABSEEDS ?= 24
LABFROM ?= $(shell date +%s)
# The release that has to be able to read what is in Redis at the end; none is
# needed where there is no history.
LABREADER ?= $(or $(PREVIOUS),HEAD~50)
.PHONY: faults
faults: setup ## Two ships in worlds of faults, from new seeds; the last line sums up (LABSEEDS=24 LABFROM=1 PREVIOUS=COMMIT LABREADER=COMMIT)
	@set -eo pipefail; export SHIP_TEST_LAB_SEEDS=$(LABSEEDS) SHIP_TEST_LAB_FROM=$(LABFROM) SHIP_TEST_LAB_CLOCKS=1 SHIP_TEST_LAB_AT_ONCE=4; \
		old=$$(mktemp -d); trap 'rm -rf "$$old"' EXIT; \
		before() { \
			mkdir "$$old/$$2"; git archive "$$1" | tar -x -C "$$old/$$2"; \
			(cd "$$old/$$2" && CGO_ENABLED=0 go build -tags faults -o ship-before ./cmd/ship); \
		}; \
		if git rev-parse -q --verify "$(LABREADER)^{commit}" >/dev/null 2>&1; then \
			before "$(LABREADER)" reader; export SHIP_TEST_LAB_READER=$$old/reader/ship-before; \
		else echo "no history, so no earlier release reads what is left"; fi; \
		if [ -n "$(PREVIOUS)" ]; then before "$(PREVIOUS)" previous; export SHIP_TEST_LAB_PREVIOUS=$$old/previous/ship-before; fi; \
		go test -race -count=1 -timeout 12h -run '^TestLab$$' -v ./cmd/ship | \
		awk '/^lab: / { sum = $$0; next } !/^=== / { print } END { print sum }'

.PHONY: sweep
sweep: setup ## Kill ship at every point of every story, where the tests take some; the last line sums up
	@set -o pipefail; SHIP_TEST_SWEEP=full go test -count 1 -run 'Sweep$$' -v -timeout 2h ./cmd/ship | \
		awk '/^ +--- (PASS|FAIL)/ { runs++ } /^ +--- FAIL/ { bad++ } !/^=== / && !/"level":/ { print } END { print "sweep: killed " runs " times, " (bad ? bad " broken" : "0 broken") }'

.PHONY: faults-long
faults-long: ## The same for hours (LABSEEDS=400)
	@$(MAKE) faults LABSEEDS=$(if $(filter command line,$(origin LABSEEDS)),$(LABSEEDS),400)

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## Fuzz every parser of outside input (FUZZTIME=5m)
	@./.ci/fuzz $(FUZZTIME)

.PHONY: help
help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
