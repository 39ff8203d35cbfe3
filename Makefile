# What each target does: make help. The work is in hack/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
VERSION ?= development
.PHONY: help up down demo test soak check quick build generate docs images examples push release deps clean
.PHONY: bench-startup bench-backup bench-upgrade bench-connections bench-crowd bench-scale
.PHONY: drill soak-drill sbom vulnerabilities

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

up: build ## Start a local Kubernetes with the operator in it
	@hack/up.sh

down: bin/localkube ## Remove the local Kubernetes with all it made
	@bin/localkube down

demo: build ## Show it: a database, a load, the primary's Pod deleted, and what became of the rows
	@hack/up.sh --quiet --few-images # the demo runs no MyApp
	@. hack/env.sh && go run ./test/demo -timings .local/timings $(ARGS)

test: build ## Run the tests, without long stories but for those of SHARE=2/12; starts a Kubernetes if none is there
	@hack/test.sh

soak: build ## Run what takes too long for make test, some hours; SHARE=3/8 is the third of eight parts, PIECES=Fuzz some
	@assets=$$(bin/localkube assets) && KUBEBUILDER_ASSETS=$$assets go run ./hack/suite soak "$(SHARE)" "$(PIECES)"

quick: ## Judge a change of some packages in seconds: format, vet, lint, tests; PACKAGES=./internal/wal, or what differs
	@hack/quick.sh $(PACKAGES)

check: bin/localkube ## Run what is quick: format, vet, lint, pure tests, generated files current
	@hack/check.sh

build: deps bin/localkube bin/toban ## Build the programs into bin/

generate: ## Write the generated files anew
	@hack/generate.sh

docs: ## Write the documentation as a site into dist/docs: plain files with a search, to open from the disk
	@go run ./hack/site $(ARGS)

images: build ## Make the container images: the operator's and PostgreSQL's
	@hack/images.sh

examples: build ## Bring the images of config/examples/all to the local Kubernetes
	@tars=$$(hack/examples.sh) && bin/localkube load $$tars

push: build ## Push all images: make push REGISTRY=registry.example.com/team
	@go run ./hack/release push "$(REGISTRY)"

release: bin/localkube deps ## Make all that a release has, in dist/: make release VERSION=v0.2.0 [REGISTRY=…]
	@go run ./hack/release make "$(VERSION)" "$(REGISTRY)" "$(URL)"

sbom: bin/toban deps ## Write bin/toban.cdx.json: what the program is made of (CycloneDX)
	@go run ./hack/release sbom

vulnerabilities: bin/toban deps ## Look for known vulnerabilities in the program, in Go's database
	@hack/govulncheck.sh

bench-startup: up ## Measure from kubectl apply to the first write and to three instances
	@KUBECONFIG=.local/kubeconfig go run ./test/bench/startup $(ARGS)

bench-backup: deps ## Measure backups and restores against pg_basebackup and pgBackRest
	@hack/bench-backup.sh $(ARGS)

bench-upgrade: up ## Measure upgrades: in place against pg_upgrade by hand; ARGS='-kind minor' or 'bluegreen'
	@bin/localkube load postgres:15 postgres:18
	@KUBECONFIG=.local/kubeconfig go run ./test/bench/upgrade $(ARGS)

bench-connections: up ## Measure what each way to a database costs: Service, passed on, PgBouncer by hand, pooler
	@KUBECONFIG=.local/kubeconfig go run ./test/bench/connections $(ARGS)

bench-crowd: up ## Measure many databases on one small machine: at once, at rest, busy, in trouble, limited
	@KUBECONFIG=.local/kubeconfig go run ./test/bench/crowd $(ARGS)

bench-scale: build ## Measure one operator with up to 1,000 databases: start, memory, requests, edits, a storm
	@KUBEBUILDER_ASSETS=$$(bin/localkube assets) go run ./test/bench/scale $(ARGS)

drill: up ## Break a database in every way and judge what became of it: make drill ARGS='-rounds 3'
	@hack/drill.sh $(ARGS)

soak-drill: up ## Break a database by two faults at random, again and again for 1 h: ARGS="-soak 3h -seed 7"
	@hack/drill.sh -soak 1h $(ARGS)

clean: ## Remove what was built here; the caches stay
	rm -rf bin dist .local

deps: ## Install the Debian packages that building and testing need, where they are missing
	@hack/deps.sh

# Go decides itself what is stale.
.PHONY: bin/localkube bin/toban
bin/localkube:
	@CGO_ENABLED=0 go build -C localkube -trimpath -o ../bin/localkube .
bin/toban:
	@hack/compile.sh toban bin/toban "$(VERSION)"
