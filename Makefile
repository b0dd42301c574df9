# Masthead. `make help` explains every target.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
CONTROLPLANE := $(BIN)/controlplane
KUBECTL := $(CONTROLPLANE)/kubectl
export MASTHEAD_CONTROLPLANE_BIN := $(CONTROLPLANE)
export KUBEBUILDER_ASSETS := $(CONTROLPLANE)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/masthead-dev/masthead/internal/version.Version=$(VERSION)

##@ Use it

.PHONY: demo
demo: controlplane build ## Start a hub and two workload clusters on this machine and walk a requirement through; leaves them running.
	@hack/demo.sh

.PHONY: demo-import
demo-import: controlplane build ## Import three clusters from EKS, AKS and GKE, which are simulated on this machine, and walk them through their lifecycle; leaves them running. MASTHEAD_WEBHOOKS=$PWD/bin/webhooks puts what make webhooks compiles in the way.
	@go build -o $(BIN)/fakecloud ./internal/test/fakecloud/cmd/fakecloud # without -trimpath: it finds the repository by its own path
	@hack/demo-import.sh

.PHONY: demo-down
demo-down: ## Stop everything that a demo left running and remove its data.
	@hack/demo-down.sh

.PHONY: build
build: ## Build bin/manager, bin/kubectl-masthead and bin/localfleet.
	@mkdir -p $(BIN)
	@echo "building bin/manager, bin/kubectl-masthead and bin/localfleet"
	@CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/manager ./cmd/manager
	@CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/kubectl-masthead ./cmd/kubectl-masthead
	@CGO_ENABLED=0 go -C test build -trimpath -o $(BIN)/localfleet ./localfleet/cmd/localfleet

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager, kubectl, kwok, Crossplane and Cluster API into bin/controlplane (a quarter of an hour or more the first time, seconds afterwards).
	@hack/build-controlplane.sh

.PHONY: image
image: ## Build dist/masthead.tar, the image for amd64 and arm64, without a container engine (VERSION=v1.2.3, IMAGE=registry/name, PLATFORMS=linux/amd64).
	@VERSION=$(VERSION) hack/image.sh

.PHONY: release
release: controlplane ## Make everything that a release publishes, in dist/: image, install.yaml, SPDX, licences, notes (VERSION=v1.2.3, IMAGE=registry/name).
	@VERSION=$(VERSION) KUBECTL=$(KUBECTL) hack/release.sh

##@ Check it

.PHONY: test
test: controlplane build ## Run every test: unit, integration and end to end, against real control planes, with the race detector where goroutines of ours run.
	@hack/test.sh

.PHONY: test-unit
test-unit: controlplane ## Run the unit and integration tests only (no fleet).
	@hack/test.sh unit

.PHONY: test-e2e
test-e2e: controlplane build ## Run the end-to-end tests only. FOCUS=regexp chooses specs.
	@hack/test.sh e2e

.PHONY: test-image
test-image: controlplane build ## Build the image, load it into Docker, and run it as a container against a local fleet. For root, a Docker is started if none answers.
	@hack/test-image.sh

.PHONY: e2e-kind
e2e-kind: controlplane ## Run the end-to-end tests in a hub and two workload clusters of kind, with those that need real nodes. E2E_KIND_IMAGE=image names a node image, FOCUS=regexp chooses specs.
	@hack/kindnode/e2e.sh

.PHONY: kind-node-image
kind-node-image: controlplane ## Build the node image for e2e-kind from source, as root, where none can be pulled (five minutes once, on two cores).
	@hack/kindnode/image.sh

.PHONY: explore
explore: ## Walk the controllers through random orders of events for MINUTES=10 of one processor, from SEED= (default: the time).
	@MASTHEAD_EXPLORE_MINUTES=$(or $(MINUTES),10) MASTHEAD_EXPLORE_SEED=$(or $(SEED),$(shell date +%s)) \
		go test -C test ./explore -run 'TestExplore|TestSearch' -count=1 -v -timeout 24h

.PHONY: guards
guards: ## Remove each guard of the controllers in turn, and walk until that does harm: two hours or three, MINUTES=2 each. GUARD= selects by a regular expression.
	@MASTHEAD_EXPLORE_GUARDS='$(or $(GUARD),.)' MASTHEAD_EXPLORE_MINUTES=$(or $(MINUTES),2) go test -C test -tags guards ./explore -run TestGuardsPreventHarm -count=1 -v -timeout 24h

.PHONY: webhooks
webhooks: controlplane ## Run the importer's tests with the webhooks of Cluster API's providers, compiled (a quarter of an hour once), record what they refuse (docs/design/importer-webhooks.md), and compare their reconcilers with the emulators. MASTHEAD_PROVIDER_CRDS=DIR:DIR takes the CRDs of provider-azure and provider-gcp from checkouts of their newest versions (package/crds).
	@hack/webhooks.sh

.PHONY: fuzz
fuzz: ## Fuzz the parsers of untrusted input for FUZZTIME each (default 30s).
	@hack/fuzz.sh

.PHONY: bench
bench: controlplane build ## Measure: benchmarks of the packages, then memory, goroutines and latencies of the manager on a real fleet (WORKLOADS="2 10").
	@hack/bench.sh

.PHONY: bench-sync
bench-sync: controlplane build ## Measure how fast claims are carried, beside kube-bind on the same API servers, about three quarters of an hour (ARGS="--clusters=1 --objects=300"; PEER=none leaves kube-bind out).
	@hack/bench-sync.sh $(ARGS)

.PHONY: bench-application
bench-application: controlplane build ## Measure how the status of Applications is kept, beside kubernetes-sigs/application on the same API server, about 40 minutes (ARGS="--apps=100"; ARGS=--peer=none leaves kubernetes-sigs/application out).
	@hack/bench-application.sh $(ARGS)

.PHONY: bench-hostile
bench-hostile: controlplane build ## Measure what 24 hostile API servers cost two honest clusters beside them, and the manager, about ten minutes (ARGS="--attacks=all --rounds=1").
	@hack/bench-hostile.sh $(ARGS)

.PHONY: bench-scale
bench-scale: controlplane build ## Measure the manager with CLUSTERS=10,100,1000 clusters, played on one API server.
	@hack/bench-scale.sh $(if $(CLUSTERS),--clusters=$(CLUSTERS)) $(ARGS)

.PHONY: health-corpus
health-corpus: ## Assess the cases of DIR, in the format of Argo CD's resource_customizations, and print where Masthead differs: with the library, without, and without the rules of the case's project (default: our own fixtures; ARGS='--want-cases=N --mode=library').
	@go run ./hack/healthcorpus $(ARGS) $(DIR)

.PHONY: lint
lint: ## Run golangci-lint and check that the generated files, go.mod and formatting are up to date.
	@hack/lint.sh

##@ Change it

.PHONY: generate
generate: ## Regenerate deep copies and CRDs from the Go types in apis/, and from config/ what the charts install.
	@hack/generate.sh

.PHONY: walk
walk: controlplane ## Run every command of kubectl masthead on a fleet of this machine, and write what they print into docs/walk.md and docs/cli.md.
	@go test -C test -count=1 ./printed -run 'TestWalkAsPrinted|TestReferenceShowsWhatIsPrinted' -update

.PHONY: docs
docs: ## Build the site of the documentation into dist/site, without the network (apt-get install mkdocs mkdocs-material).
	@mkdocs build --quiet
	@echo "built dist/site; look at it with: python3 -m http.server --directory dist/site"

.PHONY: clean
clean: ## Remove bin/ and dist/ (the control planes are then built again, from Go's cache).
	rm -rf $(BIN) dist

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; printf "Usage: make TARGET\n"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
