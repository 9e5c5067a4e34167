# Muster's build. `make run` and `make test` do all their own set-up.
export GO ?= go
BUILD   := $(CURDIR)/.build
# go-nvml's generated bindings use calls that NVIDIA has deprecated.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations
export PATH := $(BUILD)/bin:$(PATH)
# One set of flags everywhere: a package is compiled once for tests, programs and
# vet, and the result does not depend on the folder of the clone.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
PACKAGES ?= ./...
FUZZTIME ?= 5s
BENCHTIME ?= 1s
# What holds Muster against other libraries is a module of its own, so that
# they stay out of go.mod. It counts when all packages do.
ifeq ($(PACKAGES),./...)
NESTED  := test/bench test/kubelet/manager test/protogen
endif

# The packages whose tests write pages of docs/reference.
REFERENCE := ./cmd/reference ./cmd/reference/series ./devices/health ./coordinator/rest ./cmd/muster ./cmd/muster-agent ./cmd/muster-coordinator

.PHONY: help build sbom vuln reproducible run test test-long flaky race vet model model-full sim chaos kills history history-kills kubelet day test-vm hostile watches fuzz-smoke bench bench-check man reference house house-lower house-moved mutate lint proto clean prerequisites

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

# The linker leaves out the symbol table and the debug information, three tenths of the
# bytes. The version, the list of modules and the names in a panic stay.
LINK := -ldflags="-s -w"

# Only what speaks to the NVIDIA driver is built with cgo: the agent, and
# muster-dev, which is muster with the driver for `muster dev` on a host with GPUs.
build: ## build bin/muster, bin/muster-agent, bin/muster-shim, bin/muster-launch, bin/muster-coordinator and bin/muster-dev
	@mkdir -p bin
	@echo "build 1 of 4: Go's modules (with an empty cache some 100 MB to download; else nothing)"
	@$(GO) mod download
	@echo "build 2 of 4: muster, muster-coordinator, muster-launch and muster-shim (with an empty cache two to four minutes on two cores; else seconds)"
	CGO_ENABLED=0 $(GO) build -trimpath $(LINK) -o bin/ ./cmd/muster ./cmd/muster-coordinator ./cmd/muster-launch ./cmd/muster-shim
	@echo "build 3 of 4: muster-agent, with cgo (with an empty cache one to two minutes)"
	CGO_ENABLED=1 $(GO) build -trimpath $(LINK) -o bin/ ./cmd/muster-agent
	@echo "build 4 of 4: muster-dev, with cgo (with an empty cache a minute)"
	CGO_ENABLED=1 $(GO) build -trimpath $(LINK) -o bin/muster-dev ./cmd/muster

sbom: build ## a CycloneDX bill of materials of each program, in bin/sbom
	$(GO) run ./test/sbom -into bin/sbom bin/muster bin/muster-agent bin/muster-shim bin/muster-launch bin/muster-coordinator bin/muster-dev

vuln: ## govulncheck over all packages; says so where its database cannot be reached
	@GO="$(GO)" test/vuln.sh $(BUILD)

reproducible: ## build twice, in folders of different names, and compare the bytes
	@GO="$(GO)" test/reproducible.sh

run: build ## build, then run a one-machine cluster on this host
	@bin/muster dev $(ARGS)

prerequisites: ## fetch what the tests need beyond Go, gcc, make and git
	@test/prerequisites.sh $(BUILD)

test: ## vet, format, layers and all tests, in ten minutes on two cores; what CI runs
	@$(GO) build -o $(BUILD)/bin/muster-test ./test/run
	@muster-test -build $(BUILD) -nested "$(NESTED)" $(PACKAGES)

test-long: ## everything that make test is too short for (a day); PART="sim chaos" for some parts; writes rows of docs/reliability.md
	@$(GO) build -o $(BUILD)/bin/muster-test ./test/run
	@muster-test -build $(BUILD) parts $(PART)

flaky: prerequisites ## run the tests of each package many times beside LOOPS=6 busy loops and count failures in test/flaky/table.tsv (days); PART=2/5, FORCE=1, PACKAGES="./agent/..."
	@$(GO) build -o $(BUILD)/bin/muster-flaky ./test/flaky
	@muster-flaky -build $(BUILD) -loops $(or $(LOOPS),6) -part $(or $(PART),1/1) $(if $(FORCE),-force) $(if $(FOR),-for $(FOR)) $(PACKAGES)

race: ## all tests under the race detector
	@$(GO) build -o $(BUILD)/bin/muster-test ./test/run
	@muster-test -build $(BUILD) -race -timeout 60m $(PACKAGES)

vet: ## gofmt and go vet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi
	$(GO) vet $(PACKAGES)
	@for m in $(NESTED); do (cd $$m && $(GO) vet ./...) || exit 1; done

model: ## the protocol's models: every configuration and mutant (spin, gcc; two minutes)
	@test/prerequisites.sh $(BUILD) spin
	@$(GO) run ./test/model

model-full: ## larger configurations of the models (twenty minutes, 12 GB)
	@test/prerequisites.sh $(BUILD) spin
	@$(GO) run ./test/model -full -jobs 1

sim: ## simulate SEEDS=1000 clusters from seed FROM=1; SEED=n replays one and prints what happened
	$(GO) test ./test/sim -count=1 -timeout 0 -v -run '^TestSeedsHoldEveryInvariant$$' -args $(if $(SEED),-sim.seed=$(SEED),-sim.seeds=$(or $(SEEDS),1000) -sim.from=$(or $(FROM),1))

chaos: ## KILLS=500 kills, ROUNDS=1 of the partitions and HISTORIES=200 histories on real processes (half an hour); SEED=n hits the same ones
	@test/prerequisites.sh $(BUILD) etcd
	@test/prerequisites.sh $(BUILD) net
	MUSTER_TEST_LONG=1 $(GO) test ./test/chaos -count=1 -timeout 0 -v -args -chaos.kills=$(or $(KILLS),500) -chaos.rounds=$(or $(ROUNDS),1) $(if $(SEED),-chaos.seed=$(SEED))
	$(GO) test ./test/histories -count=1 -timeout 0 -v -run '^TestClientsSeeOneThingAtATime$$' -args -histories.count=$(or $(HISTORIES),200) $(if $(SEED),-histories.seed=$(SEED))

history-kills: ## KILLS=100 kills of projector, database and coordinators under load; the history is as exact afterwards
	MUSTER_TEST_LONG=1 $(GO) test ./test/chaos -run 'TheHistory(InAFile)?AfterKills' -count=1 -timeout 0 -v -args -chaos.kills=$(or $(KILLS),100) $(if $(SEED),-chaos.seed=$(SEED))

hostile: ## every attack at full size on real processes, with latencies compared (a quarter of an hour); ONLY=regexp of the cases, ROWS=S1,S7 for some rows, RESULTS=folder for the table
	@test/prerequisites.sh $(BUILD) etcd
	@test/prerequisites.sh $(BUILD) net
	$(GO) test ./test/hostile -count=1 -timeout 0 -v -run '^TestAttacks$$$(if $(ONLY),/of/./$(ONLY))' -args -hostile.long $(if $(ROWS),-hostile.rows=$(ROWS)) $(if $(RESULTS),-hostile.results=$(RESULTS))

kills: ## ROUNDS=200 rounds of kill -9 of agents, coordinators, supervisors and commands of jobs, in drawn orders (an hour); SEED=n hits the same ones
	$(GO) test ./agent/run -count=1 -timeout 0 -v -run '^(TestKillsInEveryOrder|TestRandomKills)$$' -args -kills.rounds=$(or $(ROUNDS),200) $(if $(SEED),-kills.seed=$(SEED))
	$(GO) test ./test/chaos -count=1 -timeout 0 -v -run '^TestKillingWhatRunsWork$$' -args -chaos.works=$(or $(ROUNDS),200) $(if $(SEED),-chaos.seed=$(SEED))

history: ## ROUNDS=100 rounds of kill -9 of PostgreSQL and of the history's writer, in drawn instants (ten minutes); SEED=n draws the same ones
	@test/prerequisites.sh $(BUILD) postgres
	$(GO) test ./coordinator/history/warehouse -count=1 -timeout 0 -v -run '^TestKills' -args -crash.rounds=$(or $(ROUNDS),100) $(if $(SEED),-crash.seed=$(SEED))

kubelet: ## ROUNDS=200 restarts of the agent and the real kubelet's device manager in every order, with changes of the pool (half an hour; the first build takes minutes); CHURN=1h pods and work that come and go instead
ifdef CHURN
	$(GO) test ./agent -count=1 -timeout 0 -v -run '^TestChurnLeaksNothing$$' -args -churn.time=$(CHURN) $(if $(SEED),-churn.seed=$(SEED))
else
	@test/prerequisites.sh $(BUILD) etcd
	@test/prerequisites.sh $(BUILD) net
	$(GO) test ./test/kubelet -count=1 -timeout 0 -v -args -kubelet.rounds=$(or $(ROUNDS),200) $(if $(SEED),-kubelet.seed=$(SEED))
endif

day: ## HOURS=24 hours of simulated clusters, whose history is asked for contradictions in SQLite and PostgreSQL (five minutes); FROM=1 is the first seed
	@test/prerequisites.sh $(BUILD) postgres
	$(GO) test ./test/day -count=1 -timeout 0 -v -args -day.hours=$(or $(HOURS),24) -day.from=$(or $(FROM),1)

watches: ## CHANGES=10000 changes over watches of curl, SDK, gRPC and muster get -w, while the leader and a follower are killed
	@test/prerequisites.sh $(BUILD) etcd
	$(GO) test ./test/failover -count=1 -timeout 0 -v -run '^TestWatchesGoOnOverKills$$' -args -failover.changes=$(or $(CHANGES),10000)

fuzz-smoke: ## every fuzz target for FUZZTIME each
	@test/fuzz-smoke.sh $(FUZZTIME)

bench: ## the benchmarks behind docs/benchmarks.md
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PACKAGES)
	@for m in $(NESTED); do (cd $$m && $(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...) || exit 1; done

bench-check: ## repeat the figures of docs/benchmarks.md and mark those off by more than 1.5 ×; ONLY=regexp, TIME=10m, COUNT=3, BENCHTIME=500ms, WRITE=1 to put them into the page
	@test/prerequisites.sh $(BUILD) etcd
	@test/prerequisites.sh $(BUILD) postgres
	@$(GO) run ./test/benchcheck -go "$(GO)" $(if $(ONLY),-only '$(ONLY)') $(if $(TIME),-time $(TIME)) $(if $(COUNT),-count $(COUNT)) \
		$(if $(filter command environment,$(firstword $(origin BENCHTIME))),-benchtime $(BENCHTIME)) $(if $(WRITE),-write)

man: build ## the man pages of the programs, in bin/man/man1
	@for p in muster muster-agent muster-coordinator; do bin/$$p docs man bin/man/man1 || exit 1; done

reference: ## write docs/reference and the texts of muster explain from the source
	$(GO) test ./cmd/reference -run '^TestTheTexts' -args -rewrite
	$(GO) test ./wire/limits -run Document -args -update
	$(GO) test -p 1 $(REFERENCE) -run '(Is|Are)Fresh$$' -args -rewrite

house: ## how the code is arranged: the greatest figures beside their limits
	@$(GO) run ./test/house

house-lower: ## write the figures of the code that fell into test/house/limits
	@$(GO) test -count=1 ./test/house -run '^TestTheTreeKeepsToItsLimits$$' -args -lower

house-moved: ## house-lower, and figures that rose where as much fell: code moved
	@$(GO) test -count=1 ./test/house -run '^TestTheTreeKeepsToItsLimits$$' -args -moved

test-vm: ## the enforcement suite with the shipped units, on a Debian machine in qemu (root, debootstrap, qemu; ten minutes); RUN=regexp of its tests
	@GO="$(GO)" RUN="$(RUN)" test/vm.sh $(BUILD)

gpu: build ## jobs with commands on this machine's own GPU: devices, shares, kills, a restart (root, a minute)
	test/gpu.sh bin

mutate: ## plant the mistakes of test/mutate/lists and name those that no test notices; ONLY=word for some, JOBS=n at a time; DRAW=package for N mistakes by chance
	@$(GO) run ./test/mutate -only "$(ONLY)" -draw "$(DRAW)" -n $(or $(N),60) -seed $(or $(SEED),1) -jobs $(or $(JOBS),1)

lint: ## golangci-lint and gofumpt, pinned in tools/go.mod (the first build is slow)
	cd tools && $(GO) build -o $(BUILD)/bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint mvdan.cc/gofumpt
	gofumpt -l -w $$(git ls-files '*.go' | grep -v '\.pb\.go$$')
	golangci-lint run

proto: ## regenerate proto/**/*.pb.go (needs protoc)
	proto/generate.sh

clean: ## remove what the build made
	rm -rf bin $(BUILD)
