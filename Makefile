# Shoal. `make help` lists the targets. Everything that is built lies in build/<variant>/.
#
# Variants (V=...): debug, release, asan (address + undefined), tsan, cover.

.SUFFIXES: # no rules but those below: make's own would compile a test by itself, or copy a script
V ?= debug
BUILD := build/$(V)
VERSION := $(shell sed -n 's/.*define SHOAL_VERSION "\(.*\)"/\1/p' base/contract.h)

CC := gcc
CXX := g++
WARN := -Wall -Wextra -Werror -Wshadow -Wvla
comma := ,
space := $(subst ,, )
CFLAGS_debug := -O1 -g
# what people run finds a smashed stack, copies beyond an array and jumps to nowhere; its tables are read-only once it runs
HARDENING := -fstack-protector-strong -fstack-clash-protection -fcf-protection -D_FORTIFY_SOURCE=3
HARDENING_LINK := -pie -Wl,-z,relro,-z,now
CFLAGS_release := -O3 -g -march=x86-64-v2 $(HARDENING)
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan := -O1 -g1 -fsanitize=thread -D__SANITIZE_THREAD__ # which GCC says and clang does not
CFLAGS_cover := -O0 -g --coverage
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all
VARIANTS := debug release asan tsan cover fuzz
ifeq ($(filter $(V),$(VARIANTS)),)
$(error V=$(V) is not a variant: choose one of $(VARIANTS))
endif

ifneq ($(filter fuzz tsan,$(V)),) # libFuzzer is clang's, and clang's ThreadSanitizer takes less than half of GCC's time
CC := clang
CXX := clang++
WARN += -Wno-pass-failed -Wno-unknown-pragmas # GCC's, of loops
endif
ifeq ($(V),tsan) # all tests, too: what clang warns of there and GCC, which compiles them in the other variants, does not
WARN += $(addprefix -Wno-,missing-field-initializers string-concatenation unused-variable format-security)
endif

CFLAGS := -std=gnu17 $(CFLAGS_$(V)) $(WARN) -Wstrict-prototypes -Wmissing-prototypes -I. -D_GNU_SOURCE -pthread -MMD -MP
CXXFLAGS := -std=gnu++17 $(CFLAGS_$(V)) $(WARN) -Wmissing-declarations -I. -D_GNU_SOURCE -pthread -MMD -MP
# a quarter of the time for the hundreds of programs that tests are, and without merging strings or threads, which cost more
# than they save there; what is shipped has the distribution's own linker
LINKER := $(if $(filter release,$(V)),,$(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(comma)-O0$(comma)--threads=1))
LDFLAGS := $(CFLAGS_$(V)) $(LINKER) $(if $(filter release,$(V)),$(HARDENING_LINK)) -pthread -Wl,--as-needed

# ---- rooms: each is one static library; what a room may see is what its programs link ----------------
sources = $(filter-out kernels/cuda/%,$(wildcard $(1)/*.c $(1)/*/*.c))
objects = $(addprefix $(BUILD)/,$(addsuffix .o,$(filter-out %/main.c,$(call sources,$(1)))))
ROOMS := base operator kernels agent cli
LIBS_base := -lcjson -lyaml -lcurl -lwebsockets -lcrypto -lxxhash -lz -lm
LIBS_kernels := -ldnnl -lgomp
LIBS_agent := -lpcre2-8 -lutf8proc -lstdc++
NEEDS_base := base
NEEDS_operator := operator base
NEEDS_kernels := kernels base
NEEDS_agent := agent kernels base
NEEDS_cli := cli operator agent kernels base
archives = $(foreach r,$(NEEDS_$(1)),$(BUILD)/lib$(r).a)
libraries = $(foreach r,$(NEEDS_$(1)),$(LIBS_$(r)))

.PHONY: all
all: programs gpu
.PHONY: programs
programs: $(BUILD)/shoal $(BUILD)/shoal-agent $(BUILD)/shoal-operator

$(BUILD)/shoal: $(BUILD)/cli/main.c.o $(call archives,cli)
	@echo "LINK $@" && $(CC) $(LDFLAGS) -o $@ $^ $(call libraries,cli)

$(BUILD)/shoal-agent: $(BUILD)/agent/main.c.o $(call archives,agent)
	@echo "LINK $@" && $(CC) $(LDFLAGS) -o $@ $^ $(call libraries,agent)

$(BUILD)/shoal-operator: $(BUILD)/operator/main.c.o $(call archives,operator)
	@echo "LINK $@" && $(CC) $(LDFLAGS) -o $@ $^ $(call libraries,operator)

define room
$(BUILD)/lib$(1).a: $(call objects,$(1))
	@rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room,$(r))))

# libgomp is invisible to ThreadSanitizer, and clang has another: there the loops run on the stream's own thread
OPENMP := $(if $(filter tsan fuzz,$(V)),-fopenmp-simd -Wno-unknown-pragmas,-fopenmp)
# as they are shipped in every variant: whole runs take a sixth less, also with sanitizers
$(BUILD)/kernels/cpu/%.o: CFLAGS += $(if $(filter cover,$(V)),,-O3) $(OPENMP) -fno-math-errno -fno-trapping-math
$(BUILD)/base/page.c.o: $(wildcard base/page/*) # which are in it
$(BUILD)/%.c.o: %.c
	@mkdir -p $(@D) && echo "CC   $<"
	@$(CC) $(CFLAGS) -c -o $@ $<

# ---- the CUDA backend: a shared object that programs load when they are asked for a GPU -----------------
# It is the same in every variant, so it is built once for a choice of architectures.
NVCC := $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
NVCC_VERSION = $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*, V\([0-9.]*\)$$/\1/p'))
# An older toolkit does not know all of them (one that does not say is thought to); CUDA_ARCHS is taken as it is.
# nvcc takes seconds for each: a release has all, other variants only those of the machine's GPUs, else the first.
GPU_ARCHS := $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sed 's/^90$$/90a/' | sort -u)
ifeq ($(origin CUDA_ARCHS),undefined)
CUDA_WANTED := $(if $(filter release,$(V)),75 80 86 89 90a 100,$(or $(filter-out 5% 6% 70 72,$(GPU_ARCHS)),80))
CUDA_KNOWN := $(if $(NVCC),$(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch 2>/dev/null)))
CUDA_ARCHS := $(if $(CUDA_KNOWN),$(or $(strip $(foreach a,$(CUDA_WANTED),$(if $(filter $(CUDA_KNOWN),$(a:a=)),$(a)))),80),$(CUDA_WANTED))
CUDA_LEFT_OUT := $(filter-out $(CUDA_ARCHS),$(CUDA_WANTED))
endif
CUDA := build/cuda/$(subst $(space),-,$(CUDA_ARCHS))
CUDA_HOME = $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
CUDA_SOURCES := $(wildcard kernels/cuda/*.c kernels/cuda/*.cu kernels/attention_*.c) $(patsubst %,kernels/%.c,data_error matmul) $(patsubst %,base/%.c,clock error log mem utf8)
CUDA_HIDDEN := -fPIC -fvisibility=hidden
CUDA_CFLAGS = $(filter-out $(CFLAGS_$(V)),$(CFLAGS)) $(CFLAGS_release) $(CUDA_HIDDEN) -isystem $(CUDA_HOME)/include
NVCC_COMMON := -std=c++17 -O3 -Werror all-warnings -I. -MMD -MP
NVCCFLAGS := $(NVCC_COMMON) -Xcompiler -Wall,-Wno-unknown-pragmas,$(subst $(space),$(comma),$(CUDA_HIDDEN)) \
	$(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) $(if $(filter 90a,$(CUDA_ARCHS)),-DSHOAL_SM_90A)

.PHONY: gpu
ifeq ($(NVCC),)
gpu:
	@echo "no nvcc (CUDA Toolkit): built without GPUs"
else
gpu: $(CUDA)/libshoal_cuda.so
	@[ -z "$(CUDA_LEFT_OUT)" ] || echo "$(NVCC) knows no compute capability $(CUDA_LEFT_OUT): built without"
	@mkdir -p $(BUILD) && ln -f $< $(BUILD)/
endif

$(CUDA)/libshoal_cuda.so: $(patsubst %,$(CUDA)/%.o,$(CUDA_SOURCES) base/library.c)
	@echo "LINK $@" && $(NVCC) -shared -cudart static -Xlinker -z -Xlinker now -Xlinker -z -Xlinker defs -o $@ $^
$(CUDA)/%.c.o: %.c
	@mkdir -p $(@D) && echo "CC   $< (CUDA)"
	@$(CC) $(CUDA_CFLAGS) -c -o $@ $<
$(CUDA)/%.cu.o: %.cu
	@mkdir -p $(@D) && echo "NVCC $<"
	@$(NVCC) $(NVCCFLAGS) -c -o $@ $<
-include $(wildcard $(CUDA)/*/*.d $(CUDA)/*/*/*.d)

# The hot kernels' machine code, which tests/sass looks at; and all that a release has for the oldest GPUs, which nothing
# else in a test run compiles.
SASS := build/sass
SASS_HOT := $(addprefix attention_,forward keys queries) adam conv2d cross_entropy gated layer_norm rms_norm
SASS_HOPPER := attention_hopper attention_hopper_keys attention_hopper_queries # whose instructions no other GPU has
SASS_CUBINS := $(if $(NVCC),$(foreach a,80 90a,$(patsubst %,$(SASS)/$(a)/%.cubin,$(SASS_HOT))) $(patsubst %,$(SASS)/90a/%.cubin,$(SASS_HOPPER)))
SASS_OLDEST := $(if $(NVCC),$(patsubst kernels/cuda/%.cu,$(SASS)/75/%.cubin,$(wildcard kernels/cuda/*.cu)))
.PHONY: sass sass-cubins
sass: $(SASS_CUBINS) $(SASS_OLDEST)
sass-cubins: # the hot kernels': what else lies there may be of another day
	@printf '%s\n' $(SASS_CUBINS)
define cubin
$(SASS)/$(1)/%.cubin: kernels/cuda/%.cu
	@mkdir -p $$(@D) && echo "NVCC $$< (sm_$(1))"
	@$(NVCC) $(NVCC_COMMON) -cubin -arch=sm_$(1) -o $$@ $$<
endef
$(foreach a,75 80 90a,$(eval $(call cubin,$(a))))
-include $(wildcard $(SASS)/*/*.d)

include tests/emulation/emulation.mk

# ---- tests: tests/<room>/[<folder>/]test_<module>.c is one program and links what its room may see ----
TEST_SUPPORT := $(patsubst %.c,$(BUILD)/%.c.o,$(wildcard tests/*.c))
tests_of = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/$(1)/test_*.c tests/$(1)/*/test_*.c))
TEST_PROGRAMS := $(foreach r,$(ROOMS),$(call tests_of,$(r)))

# what is not test_* there helps the others
helpers_of = $(foreach f,$(wildcard tests/$(1)/*.c tests/$(1)/*/*.c),$(if $(filter test_%,$(notdir $(f))),,$(BUILD)/$(f).o))

define tests
$(BUILD)/tests/$(1)/%: $(BUILD)/tests/$(1)/%.c.o $(TEST_SUPPORT) $(call helpers_of,$(1)) $(call archives,$(1))
	@$(CC) $(LDFLAGS) -o $$@ $$^ $(call libraries,$(1)) -lcmocka -lssl
endef
$(foreach r,$(ROOMS),$(eval $(call tests,$(r))))
.SECONDARY:

# one test, and one on the emulated GPU
ONE_TEST := $(patsubst $(BUILD)/%,%,$(TEST_PROGRAMS) $(EMULATION_TESTS))
.PHONY: $(ONE_TEST)
$(ONE_TEST): %: $(BUILD)/%
	@. tests/environment.sh && $<
tests/%@cuda: $(BUILD)/tests/% emulation
	@. tests/environment.sh && SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$(CURDIR)/$(EMULATION)/libshoal_cuda.so \
		SHOAL_CUDA_LIBRARY_PATH=$(CURDIR)/$(EMULATION) SHOAL_EMULATION=gpus=4 $<

# libraries of others that a test machine need not have, as far as tests need them
$(BUILD)/fakes/libnvidia-ml.so.1: tests/fakes/nvml.c agent/telemetry/nvml_api.h
	@mkdir -p $(@D) && $(CC) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<
$(BUILD)/tests/agent/test_nvml $(BUILD)/tests/agent/test_gpu_hardware: | $(BUILD)/fakes/libnvidia-ml.so.1
$(BUILD)/fakes/libcuda.so.1: tests/fakes/cuda.c
	@mkdir -p $(@D) && $(CC) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<
$(BUILD)/tests/kernels/test_stream_progress: $(BUILD)/kernels/cuda/stream_progress.c.o
$(BUILD)/tests/kernels/test_candidates: $(BUILD)/kernels/cuda/candidates.c.o
$(BUILD)/tests/kernels/test_cudnn_plan: $(patsubst %,$(BUILD)/%.c.o,base/library $(addprefix kernels/cuda/cudnn_,api graph attention)) | $(BUILD)/fakes/libcuda.so.1

# fuzz targets: tests/fuzz/fuzz_<name>.c with its corpus; our driver runs them in make check, libFuzzer by hand
FUZZ_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAIN := $(if $(filter fuzz,$(V)),-fsanitize=fuzzer,$(BUILD)/tests/fuzz/driver.c.o)
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.c.o $(filter %.o,$(FUZZ_MAIN)) $(call archives,cli)
	@$(CC) $(LDFLAGS) -o $@ $^ $(filter -%,$(FUZZ_MAIN)) $(call libraries,cli)

# for tests/deploy/test_bundle.sh and tests/e2e/test_first_gpu.sh
BENCH_PROGRAMS := $(addprefix tests/,gpu/gpu $(addprefix bench/,ops_bench language_bench head_bench attention_bench))

# what runs each of them; the same for every variant
build/patience: $(wildcard tests/runner/*.c tests/runner/*.h)
	@mkdir -p $(@D) && echo "LINK $@"
	@$(CC) -std=gnu17 -O1 -g $(WARN) -I. -D_GNU_SOURCE -o $@ $(filter %.c,$^)

.PHONY: tests
tests: all build/patience $(TEST_PROGRAMS) $(FUZZ_PROGRAMS) emulation $(if $(filter debug,$(V)),$(addprefix $(BUILD)/,$(BENCH_PROGRAMS)) sass races ptx)

# ---- targets for people -------------------------------------------------------------------------------
.PHONY: help deps cluster-deps demo image check fuzz lint fmt bench bench-torch bench-ops cover clean compile_commands.json
help:
	@awk '$$1 == "include" { while ((getline line <$$2) > 0) if (sub(/^#> /, "", line)) print line } sub(/^#> /, "")' Makefile

#> make                build all three programs into build/debug (V=release|asan|tsan|cover: another variant)
#> make deps           install what is missing, from Debian's packages only
deps:
	@./deploy/deps.sh

#> make cluster-deps   also what makes images and runs the test cluster (tests/cluster/up.sh)
cluster-deps:
	@./deploy/deps.sh cluster

#> make demo           run the PyTorchJob in deploy/demo: four processes train MNIST's network, sharded
demo: deps
	@$(MAKE) --silent --no-print-directory V=release programs
	@PATH="$(CURDIR)/build/release:$$PATH" shoal run -f deploy/demo/mnist.yaml
	@deploy/demo/accuracy.sh shoal-logs/mnist/mnist-master-0.log

#> make demo-llama     train a small Llama on a file of fortunes in two processes, and let it tell some of its own
.PHONY: demo-llama
FORTUNES := /usr/share/games/fortunes/fortunes
demo-llama: deps
	@$(MAKE) --silent --no-print-directory V=release programs
	@deploy/demo/fortunes.sh $(FORTUNES) build/demo/fortunes
	@PATH="$(CURDIR)/build/release:$$PATH" shoal run -f deploy/demo/llama.yaml
	@PATH="$(CURDIR)/build/release:$$PATH" deploy/demo/fortunes.sh tell $(FORTUNES) build/demo/llama

#> make demo-t5        train a small T5 to write days as ISO 8601 does, in two processes, and ask it for some that it has not seen
.PHONY: demo-t5
demo-t5: deps
	@$(MAKE) --silent --no-print-directory V=release programs
	@deploy/demo/dates.sh build/demo/dates
	@PATH="$(CURDIR)/build/release:$$PATH" shoal run -f deploy/demo/t5.yaml
	@PATH="$(CURDIR)/build/release:$$PATH" deploy/demo/dates.sh ask build/demo/dates build/demo/t5

include deploy/release/release.mk

#> make check          lint, then every test, plain and under ASan+UBSan and TSan
#> make check T=NAME   only the tests whose name contains NAME, e.g. T=agent/test_shard
CHECK_VARIANTS ?= debug asan tsan
check: export CUDA_ARCHS := 90a
check: deps cluster-deps lint
	@for v in $(CHECK_VARIANTS); do $(MAKE) --no-print-directory -j$$(nproc) V=$$v tests || exit; done
	@$(MAKE) --no-print-directory -j$$(nproc) V=release all
	@programs=$$(tests/cluster/build.sh $(if $(filter 0,$(shell id -u)),node,control-plane)) && \
		promtool=$$(tests/promtool.sh) && PATH="$$promtool:$$PATH:$$programs" tests/run.sh "$(T)" $(CHECK_VARIANTS) # kubectl, where there is none

#> make tests/ROOM/test_X   build and run one test, e.g. tests/kernels/test_linear (V=asan or tsan; ...@cuda: on the emulated GPU)

#> make check-cluster  only what runs real pods on a node of its own (needs root; part of make check)
check-cluster:
	@$(MAKE) --no-print-directory check T=pods/ CHECK_VARIANTS=debug

#> make check-newer    the CRD, its CEL rules and the operator on the newest server of custom resources that Debian has, or on
#>                     the API server in KUBEBUILDER_ASSETS if it is of 1.30 or later (T=NAME)
.PHONY: check-newer
check-newer: deps cluster-deps
	@$(MAKE) --no-print-directory -j$$(nproc) V=debug programs build/patience
	@tests/newer/check.sh "$(T)"

#> make check-kueue    jobs in the queues of a real Kueue, that of KUEUE_ASSETS=FOLDER (docs/install.md; T=NAME)
.PHONY: check-kueue
check-kueue: deps cluster-deps
	@$(MAKE) --no-print-directory -j$$(nproc) V=debug programs build/patience
	@tests/kueue/check.sh "$(T)"

#> make dashboards-table  asks a real Prometheus for every panel of every dashboard, and writes docs/dashboards.md
.PHONY: dashboards-table
dashboards-table: deps cluster-deps
	@$(MAKE) --no-print-directory -j$$(nproc) V=debug CUDA_ARCHS=90a programs emulation build/debug/fakes/libnvidia-ml.so.1
	@programs=$$(tests/cluster/build.sh control-plane) && promtool=$$(tests/promtool.sh) && PATH="$$promtool:$$PATH:$$programs" TABLE=docs/dashboards.md tests/e2e/test_dashboards.sh

#> make fuzz T=NAME    look for inputs that break tests/fuzz/fuzz_NAME.c until one is found or Ctrl-C (needs clang)
fuzz: deps
	@[ -e "tests/fuzz/fuzz_$(T).c" ] || { echo "make fuzz: T=NAME must be one of" \
		$(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)) >&2; exit 2; }
	@$(MAKE) --no-print-directory V=fuzz build/fuzz/tests/fuzz/fuzz_$(T)
	@mkdir -p build/fuzz/corpus/$(T)
	@build/fuzz/tests/fuzz/fuzz_$(T) build/fuzz/corpus/$(T) tests/fuzz/corpus/$(T)

# what `make fuzz` compiles, as far as clang would refuse it: for tests/lint.sh
.PHONY: fuzz-syntax
fuzz-syntax: # V=fuzz
	@$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fsyntax-only $(filter %.c,$(foreach r,$(ROOMS),$(call sources,$(r)))) tests/fuzz/*.c

# A second compiler reads the CUDA sources as CUDA: for tests/lint.sh. clang 14 includes two headers of texture references,
# which CUDA 13 has no more; here they are empty. Its warnings are of code for GPUs that have matrix units.
CLANG_CUDA := build/clang-cuda
CLANG_CUDA_FLAGS = -x cuda -std=c++17 --cuda-path=$(CUDA_HOME) --cuda-device-only --cuda-gpu-arch=sm_80 -fsyntax-only \
	-Wall -Wextra -Werror -Wno-unknown-cuda-version -D__CLANG_CUDA_TEXTURE_INTRINSICS_H__ -isystem $(CLANG_CUDA) -I.
.PHONY: cuda-syntax
cuda-syntax:
	@mkdir -p $(CLANG_CUDA) && touch $(addprefix $(CLANG_CUDA)/texture_,fetch_functions.h indirect_functions.h)
	@$(if $(NVCC),clang $(CLANG_CUDA_FLAGS) $(wildcard kernels/cuda/*.cu),echo "no nvcc (CUDA Toolkit), whose headers clang needs")

#> make lint           format, static analysis, headers on their own, the doors between the rooms
lint: deps
	@tests/lint.sh
#> make fmt            format every C file
fmt:
	@git ls-files -- '*.c' '*.h' '*.cc' '*.cu' | xargs clang-format -i

#> make bench          each sharding strategy at 1 and 4 ranks, and the language models: speed and peak memory
bench: deps
	@$(MAKE) --no-print-directory V=release programs
	@tests/bench/bench.sh
	@tests/bench/bench_all_models.sh
#> make bench-torch    the same work in PyTorch beside us (installed from PyPI into build/), and the ratio
bench-torch: deps
	@$(MAKE) --no-print-directory V=release programs
	@tests/bench/bench_torch.sh
	@tests/bench/bench_all_models.sh torch

#> make check-torch    what the agent writes, read by safetensors, PyTorch and transformers (likewise from PyPI)
.PHONY: check-torch
check-torch: deps
	@$(MAKE) --no-print-directory V=release programs
	@BUILD=$(CURDIR)/build/release tests/parity/check.sh

#> make bench-llama    tokens/s and memory of a 25M-parameter Llama; WITH=torch: beside transformers and PyTorch
#> make bench-t5       the same of T5-small, 512 and 128 tokens; make bench-bert: of a BERT of 4 layers, masked LM
BENCH_MODELS := $(notdir $(wildcard tests/bench/models/*))
.PHONY: $(addprefix bench-,$(BENCH_MODELS))
$(addprefix bench-,$(BENCH_MODELS)): bench-%: deps
	@$(MAKE) --no-print-directory V=release programs
	@tests/bench/bench_models.sh $* $(WITH)

#> make bench-recovery  seconds from kill -9 of a rank to the end of the next step (RANKS=8 KILLS=5); 1,000 ranks meet
.PHONY: bench-recovery
bench-recovery: deps
	@$(MAKE) --no-print-directory V=release programs build/release/tests/bench/meeting_bench
	@tests/bench/bench_recovery.py $(or $(RANKS),8) $(or $(KILLS),5)
	@build/release/tests/bench/meeting_bench

#> make bench-page     the live page in Chromium: first paint, bytes, frames while 1,000 jobs are scrolled (LOADS=20 JOBS=1000)
.PHONY: bench-page
bench-page: deps
	@$(MAKE) --no-print-directory V=release programs
	@BUILD=build/release tests/bench/bench_page.py $(or $(LOADS),20) $(or $(JOBS),1000)

#> make screenshots    takes the pictures of the live page and of terminals in docs/ anew, of trainings of this machine
.PHONY: screenshots
screenshots: deps
	@$(MAKE) --no-print-directory V=release programs
	@BUILD=build/release tests/browser/screenshots.sh

#> make storm          a training whose ranks and launchers are killed, stopped and cut off (KILLS=20 EVERY=2 RANKS=4 SEED= ELASTIC=);
#>                     PODS=1: pods, the operator and the API server, too (needs root; builds a node; KILLS=20 SEED=)
.PHONY: storm
storm: deps $(if $(PODS),cluster-deps)
	@$(MAKE) --no-print-directory V=$(if $(PODS),debug,release) programs
ifdef PODS
	@PATH="$$PATH:$$(tests/cluster/build.sh node)" KILLS=$(or $(KILLS),20) SEED=$(SEED) tests/pods/test_storm.sh
else
	@tests/storm/storm.py $(or $(KILLS),20) $(or $(EVERY),2) '$(RANKS)' $(SEED)
endif

#> make transcript     what people see while a rank, a pod and a kubelet are killed (needs root; builds a node as check-cluster)
.PHONY: transcript
transcript: deps cluster-deps
	@$(MAKE) --no-print-directory V=debug programs
	@PATH="$$PATH:$$(tests/cluster/build.sh node)" tests/pods/transcript.sh

#> make simulate-hangs  what finds ranks that hang, on HOURS=100000 simulated ones: no false alarm, and each hang found
HOURS := 100000
.PHONY: simulate-hangs
simulate-hangs: deps
	@$(MAKE) --no-print-directory V=release build/release/tests/agent/test_hang_detector
	@build/release/tests/agent/test_hang_detector $(HOURS)

#> make prove          every small history of the operator's decisions, and 10^6 random ones (docs/operator-proofs.md)
SMALL_HISTORIES := tests/operator/histories/test_small_histories
RANDOM_HISTORIES := tests/operator/reconcile/test_simulation
.PHONY: prove
prove: deps
	@$(MAKE) --no-print-directory V=release $(addprefix build/release/,$(SMALL_HISTORIES) $(RANDOM_HISTORIES))
	@build/release/$(SMALL_HISTORIES) all
	@build/release/$(RANDOM_HISTORIES) 1000000

#> make prove-random   HISTORIES=1000000 random ones alone, from seed FROM=1 on, by PROCESSES=1 at once
.PHONY: prove-random
prove-random: deps
	@$(MAKE) --no-print-directory V=release build/release/$(RANDOM_HISTORIES)
	@$(dir $(RANDOM_HISTORIES))random_histories.sh build/release/$(RANDOM_HISTORIES) $(or $(HISTORIES),1000000) $(or $(FROM),1) $(or $(PROCESSES),1)

#> make sieve          the operator at every request and watch event of small scenarios, on a real API server (ARGS="--draw 100 --seed 7")
#> make acto           each field of a PyTorchJob set, changed, removed and spoilt, on a real API server (ARGS="--draw 100 --seed 7")
WITH_API_SERVER := programs=$$(tests/cluster/build.sh control-plane) && PATH="$$PATH:$$programs"
.PHONY: sieve acto
sieve acto: deps cluster-deps
	@$(MAKE) --no-print-directory -j$$(nproc) V=release programs
	@$(WITH_API_SERVER) BUILD=$(CURDIR)/build/release tests/$@/run.sh $(ARGS)

#> make prove-mutations  breaks the operator in many ways (T=WORDS: those with these words): the histories must find each;
#>                     make sieve-mutations, make acto-mutations: the sieve, or acto
MUTATIONS := prove sieve acto
# of each: its script; the objects that are linked with a mutant's; what else it needs
MUTATIONS_prove := tests/operator/histories/mutations.sh
MUTATIONS_sieve := tests/sieve/mutations.sh
MUTATIONS_acto := tests/acto/mutations.sh
MUTATED_prove = $(patsubst %,$(BUILD)/%.c.o,$(SMALL_HISTORIES) $(RANDOM_HISTORIES)) $(TEST_SUPPORT) $(call helpers_of,operator)
MUTATED_sieve = $(BUILD)/operator/main.c.o
MUTATED_acto = $(MUTATED_sieve)
MUTATED_LIBS_prove := -lcmocka -lssl
MUTATED_WITH_sieve := $(WITH_API_SERVER)
MUTATED_WITH_acto := $(WITH_API_SERVER)
.PHONY: $(addsuffix -mutations,$(MUTATIONS))
prove-mutations: deps
sieve-mutations acto-mutations: deps cluster-deps
$(addsuffix -mutations,$(MUTATIONS)): %-mutations:
ifneq ($(V),release)
	@$(MAKE) --no-print-directory V=release $@
else
	@$(MAKE) --silent --no-print-directory $(MUTATED_$*) $(call archives,operator)
	@$(MUTATED_WITH_$*) T="$(T)" $(MUTATIONS_$*) "$(CC) $(CFLAGS)" "$(CC) $(LDFLAGS)" $(MUTATED_$*) $(call archives,operator) \
		$(call libraries,operator) $(MUTATED_LIBS_$*)
endif

#> make bench-operator  the operator on a real API server: pods/s, API requests, memory, start (JOBS=1000)
bench-operator: deps cluster-deps
	@$(MAKE) --no-print-directory V=release programs
	@tests/bench/bench_operator.sh $(JOBS)

#> make bench-scale    the operator's own memory and time for 10,000 simulated jobs of 10 pods, and half and a quarter (JOBS=10000)
.PHONY: bench-scale
bench-scale: deps
	@$(MAKE) --no-print-directory V=release build/release/tests/bench/scale_bench
	@build/release/tests/bench/scale_bench $(JOBS)
$(BUILD)/tests/bench/scale_bench: $(patsubst %,$(BUILD)/tests/bench/scale_%.c.o,bench cluster objects) $(call archives,operator)
	@$(CC) $(LDFLAGS) -o $@ $^ $(call libraries,operator)

#> make bench-progress  what it costs the operator that running jobs show how their trainings go (JOBS=1000 EVERY=15 ANSWERS=5)
bench-progress: deps cluster-deps
	@$(MAKE) --no-print-directory V=release programs
	@tests/bench/bench_progress.sh $(or $(JOBS),1000) $(or $(EVERY),15) $(ANSWERS)

#> make bench-ops      milliseconds of each op at the sizes of MNIST and of language models (THREADS=2: of the latter)
bench-ops: deps
	@$(MAKE) --no-print-directory V=release $(addprefix build/release/tests/bench/,ops_bench language_bench)
	@build/release/tests/bench/ops_bench
	@build/release/tests/bench/language_bench cpu $(THREADS)
$(BUILD)/tests/bench/%_bench: $(BUILD)/tests/bench/%_bench.c.o $(patsubst %,$(BUILD)/tests/bench/%.c.o,timing predicted head) $(call archives,agent)
	@$(CC) $(LDFLAGS) -o $@ $^ $(call libraries,agent)

#> make check-gpu      the ops, and compute-sanitizer, on this machine's GPUs
GPU_BENCHES := $(addprefix build/release/,$(BENCH_PROGRAMS))
GPU_PROGRAMS := $(addprefix build/release/tests/,gpu/gpu $(shell tests/gpu/programs.sh))
$(BUILD)/tests/bench/meeting_bench: $(BUILD)/tests/bench/meeting_bench.c.o $(call archives,agent)
	@$(CC) $(LDFLAGS) -o $@ $^ $(call libraries,agent)
$(BUILD)/tests/gpu/%: $(BUILD)/tests/gpu/%.c.o $(call archives,kernels)
	@$(CC) $(LDFLAGS) -o $@ $^ $(call libraries,kernels)
.PHONY: first-gpu check-gpu bench-gpu bundle
check-gpu: deps
	@$(MAKE) --silent --no-print-directory -j$$(nproc) V=release $(if $(GPU_ARCHS),CUDA_ARCHS="$(GPU_ARCHS)") all $(GPU_PROGRAMS)
	@tests/gpu/check.sh build/release

#> make first-gpu      the first minutes on a GPU, in stages of 9 minutes at most together (FROM=STAGE, STAGES="A B"); ARGS=--dry_run
first-gpu: deps
	@$(MAKE) --silent --no-print-directory -j$$(nproc) V=release $(if $(GPU_ARCHS),CUDA_ARCHS="$(GPU_ARCHS)") all $(GPU_PROGRAMS) $(GPU_BENCHES)
	@FROM="$(FROM)" STAGES="$(STAGES)" tests/gpu/first.sh $(ARGS)

#> make bench-gpu      kernels against their floor, whole training steps beside PyTorch's; ARGS=--dry_run: only says what it runs
bench-gpu: deps
	@$(MAKE) --silent --no-print-directory -j$$(nproc) V=release $(if $(GPU_ARCHS),CUDA_ARCHS="$(GPU_ARCHS)") all $(GPU_BENCHES)
	@tests/gpu/bench.sh $(ARGS)

#> make attention-table  measure our attention and cuDNN's on this machine's GPU: kernels/attention_table.c chooses by it
.PHONY: attention-table
attention-table: deps
	@$(MAKE) --silent --no-print-directory -j$$(nproc) V=release $(if $(GPU_ARCHS),CUDA_ARCHS="$(GPU_ARCHS)") gpu \
		$(addprefix build/release/tests/,gpu/gpu kernels/test_cudnn bench/attention_bench)
	@tests/gpu/attention_table.sh build/release

#> make sass-budget    records what nvcc makes of the hot kernels: registers, spills, instructions (tests/sass/budget.txt)
.PHONY: sass-budget
sass-budget: deps sass
	@[ -n "$(NVCC)" ] || { echo "make sass-budget: no nvcc (CUDA Toolkit) on the PATH or in /usr/local/cuda/bin" >&2; exit 2; }
	@tests/sass/budget.py write tests/sass/budget.txt "$(NVCC_VERSION)" $(SASS_CUBINS)
	@git --no-pager diff --stat tests/sass/budget.txt

#> make ptx-mutations  breaks the inline assembly of the GPU kernels in many ways: what nvcc makes of it must be found wrong (T=WORDS)
.PHONY: ptx-mutations
ptx-mutations: deps
	@[ -n "$(NVCC)" ] || { echo "make ptx-mutations: no nvcc (CUDA Toolkit) on the PATH or in /usr/local/cuda/bin" >&2; exit 2; }
	@$(MAKE) --silent --no-print-directory -j$$(nproc) V=debug build/patience emulation ptx $(addprefix build/debug/tests/kernels/test_,attention attention_hopper)
	@T="$(T)" BUILD=build/debug tests/ptx/mutations.sh "$(PTX_COMPILE)"

#> make bundle         build/bundle: one folder for GPU machines where nothing is installed; there: ./first-gpu, ./check-gpu
bundle: deps
	@$(MAKE) --silent --no-print-directory -j$$(nproc) V=release all $(GPU_PROGRAMS) $(GPU_BENCHES)
	@tests/gpu/bundle.sh build/release build/bundle

#> make cover          line coverage of the suite
cover: deps
	@$(MAKE) --no-print-directory -j$$(nproc) V=cover tests
	@tests/run.sh "$(T)" cover
	@gcovr --root . --exclude 'tests/' build/cover
#> make compile_commands.json   for editors
compile_commands.json: deps
	bear -- $(MAKE) --always-make V=debug tests
#> make clean          remove build/
clean:
	rm -rf build

-include $(shell [ -d $(BUILD) ] && find $(BUILD) -name '*.d')
