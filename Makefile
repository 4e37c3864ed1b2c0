# `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Without cgo, the result is one static binary. It contains the commit if the source is a
# git repository.
export CGO_ENABLED := 0
vcs := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false)
build = go build -trimpath -buildvcs=$(vcs) -ldflags '-s -w'

page := internal/web
peer := bench/peer
clients := e2e/clients
htmx := $(page)/static/vendor/htmx.min.js

.PHONY: help build run test test-race test-long bench docs screenshots backtest release check fmt generate vendor setup clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

build: vendor ## build bin/assay
	$(build) -o bin/assay ./cmd/assay

run: build ## build and start the demo
	@exec bin/assay demo

test: setup vendor ## run every test once, with short, seeded counts
	@go test -count=1 -timeout 60m ./...
	@go -C deploy test -count=1 -timeout 60m ./...
	@go -C client/go test -count=1 -timeout 5m ./...

test-race: setup vendor ## run every test under the race detector (needs a C compiler)
	@CGO_ENABLED=1 go test -race -count=1 -timeout 40m ./...
	@CGO_ENABLED=1 go -C client/go test -race -count=1 -timeout 5m ./...

# One package at a time, because some tests measure time.
test-long: setup vendor ## run every test with its full counts (an hour)
	@ASSAY_LONG=1 go test -count=1 -p 1 -timeout 6h ./...
	@ASSAY_LONG=1 go -C deploy test -count=1 -timeout 1h ./...
	@go -C client/go test -count=1 -timeout 5m ./...

bench: build $(peer)/node_modules/.ready ## run the benchmarks, also of comparison programs (BENCH="-only T2,T4")
	@go run ./bench $(BENCH)

docs: ## write the documentation as a site to bin/docs
	@go run ./docs/build bin/docs

screenshots: build ## take the screenshots of the README again
	@scripts/setup test
	@mkdir -p bin/screenshots
	@ASSAY_SHOTS=$(CURDIR)/bin/screenshots go test -count=1 -run TestBrowser_F ./internal/web
	@cp bin/screenshots/overview-live.top.png docs/images/overview.png
	@cp bin/screenshots/item-light.top.png docs/images/price.png

backtest: build ## measure pricing on the real data in ../shared/data (BACKTEST="--estimate average")
	@go run ./bench/backtestdata ../shared/data bin/backtest
	@failed=0; for set in six weekly; do bin/assay backtest bin/backtest/$$set --plots bin/backtest/plots/$$set $(BACKTEST) || failed=$$?; done; exit $$failed

# The Node.js peer uses packages from the npm registry. Without npm or a network, the
# benchmarks run without it.
$(peer)/node_modules/.ready: $(peer)/package-lock.json $(peer)/schema.prisma
	@scripts/setup bench
	@if command -v npm >/dev/null && npm ci --prefix $(peer) --ignore-scripts --no-audit --no-fund --loglevel=error && \
		npm run --prefix $(peer) --silent generate >/dev/null; then touch $@; else echo 'bench: the Node.js peer is left out' >&2; fi

# The version and the commit are stamped by the linker, so that equal sources give equal bytes.
release: vendor ## build the files of a release in dist/ (VERSION=0.1.0; without it, a snapshot)
	@[ -z '$(VERSION)' ] || [ -z "$$(git status --porcelain)" ] || { echo 'release: commit, undo or remove all changes and untracked files first' >&2; exit 1; }
	@go -C deploy run ./release -source .. -out ../dist -version '$(VERSION)' -commit "$$(git rev-parse HEAD)" -time "$$(git log -1 --format=%ct)"

# A linter built with an older Go version rejects newer code. Therefore the tools are
# built here, from their own module.
check: bin/tools/golangci-lint bin/tools/gofumpt $(clients)/node_modules/.ready vendor ## check formatting, linters and generated files
	@unformatted=$$(bin/tools/gofumpt -l cmd docs internal deploy client $(wildcard e2e bench)); \
	if [ -n "$$unformatted" ]; then printf 'not formatted (make fmt):\n%s\n' "$$unformatted"; exit 1; fi
	@scripts/dependencies
	@go mod tidy -diff
	@go -C tools mod tidy -diff
	@go -C $(clients)/go mod tidy -diff
	@go -C deploy mod tidy -diff
	@go -C client/go mod tidy -diff
	@go vet ./...
	@go -C client/go vet ./...
	@bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd deploy && ../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd client/go && ../../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@go test -count=1 -run '$(generated)' $(generators)
	@echo 'check: passed'

fmt: bin/tools/golangci-lint bin/tools/gofumpt ## format, and use the shorter forms of newer Go versions
	@bin/tools/golangci-lint run --enable-only modernize --fix ./... || true
	@bin/tools/gofumpt -l -w cmd docs internal deploy client $(wildcard e2e bench)

# These tests compare generated files with the code: pages of the reference, expected
# database schemas, the list of messages, and the clients. With ASSAY_UPDATE=1 they write the files.
generators := ./internal/config ./internal/cli ./internal/api ./internal/db ./internal/wallet/audit ./docs
generated := ^(TestDefinitions_AreTheDocumentedOnes|TestReference_MatchesTheHelp|TestProblems_AreTheDocumentedOnes|TestRoutes_AreTheDocumentedOnes|TestClients_AreGeneratedFromTheDocument|TestMetrics_AreTheDocumentedOnes|TestGuard_MatchesTheMigrations|TestCatalog_PostgresIsTheOneStored|TestTables_AreTheDocumentedOnes|TestMessages_ArePlainEnglish)$$

generate: $(clients)/node_modules/.ready ## rewrite the generated pages, the expected schemas and the clients
	@: > internal/db/catalog_postgres.txt # an empty file matches every schema
	@ASSAY_UPDATE=1 go test -count=1 -run '$(generated)' $(generators)

vendor: $(htmx)

# Without npm, the page is built without these scripts. It works, but reloads instead of
# updating itself, and its live charts do not move.
$(htmx): $(page)/package-lock.json $(page)/package.json
	@scripts/setup page
	@if command -v npm >/dev/null; then \
		npm ci --prefix $(page) --ignore-scripts --no-audit --no-fund --loglevel=error && \
		npm run --prefix $(page) --silent vendor && mkdir -p $(page)/testdata/vendor && \
		cp $(page)/node_modules/axe-core/axe.min.js $(page)/testdata/vendor/ && rm -rf $(page)/node_modules; \
	fi

setup: $(clients)/node_modules/.ready
	@scripts/setup test

# Linters for the OpenAPI document and a generator of API clients. Without npm, the tests
# that need them are skipped.
$(clients)/node_modules/.ready: $(clients)/package-lock.json
	@scripts/setup test
	@if command -v npm >/dev/null && npm ci --prefix $(clients) --ignore-scripts --no-audit --no-fund --loglevel=error; then touch $@; \
		else echo 'test: the OpenAPI document is not linted, and no TypeScript client is generated' >&2; fi

bin/tools/%: tools/go.mod tools/go.sum
	@echo 'building the tools (once, about a minute)'
	@go -C tools build -o ../bin/tools/ tool

clean: ## remove build results, but no data
	rm -rf bin dist $(page)/static/vendor $(page)/node_modules $(peer)/node_modules $(clients)/node_modules coverage.out
