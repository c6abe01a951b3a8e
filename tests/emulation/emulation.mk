# The CUDA backend's sources, and NCCL, on a machine without a GPU. A part of the Makefile.

# What programs load instead of a GPU's backend (tests/emulation/emulation.h). Not under ThreadSanitizer: a block's threads
# are fibers of one host thread, and a lock is held while they run, so it has nothing to see there.
EMULATION := $(BUILD)/emulation
EMULATED := $(patsubst %,$(EMULATION)/%.o,$(CUDA_SOURCES) $(wildcard tests/emulation/*.c tests/emulation/*.cc))
EMULATION_FLAGS := $(CUDA_HIDDEN) -DSHOAL_EMULATION -Itests/emulation/include
EMULATION_CXXFLAGS = $(filter-out -std=% -Wmissing-declarations -Wshadow,$(CXXFLAGS)) -std=gnu++20 -Wno-unknown-pragmas -Wno-psabi $(EMULATION_FLAGS)
# tests/run.sh says how many lines of the kernels were executed; one host thread runs them, so their counters
# need no atomics (which -pthread would choose)
EMULATION_COVERAGE := $(if $(filter debug,$(V)),--coverage -fprofile-update=single)
$(EMULATION)/libshoal_cuda.so: $(EMULATED)
	@echo "LINK $@" && $(CXX) $(LDFLAGS) $(EMULATION_COVERAGE) -shared -Wl,-z,defs -o $@ $^ -lboost_context
$(EMULATION)/%.c.o: %.c
	@mkdir -p $(@D) && echo "CC   $< (emulation)"
	@$(CC) $(CFLAGS) $(EMULATION_FLAGS) -c -o $@ $<
$(EMULATION)/%.cc.o: %.cc
	@mkdir -p $(@D) && echo "CXX  $<"
	@$(CXX) $(EMULATION_CXXFLAGS) -c -o $@ $<
$(EMULATION)/%.cu.o: %.cu
	@mkdir -p $(@D) && echo "CXX  $< (emulation)"
	@$(CXX) $(EMULATION_CXXFLAGS) $(EMULATION_COVERAGE) -x c++ -c -o $@ $<

# And once more so that each access of a kernel is seen (tests/emulation/races.h).
RACES := $(BUILD)/races
$(RACES)/libshoal_cuda.so: $(patsubst %.cu,$(RACES)/%.cu.o,$(filter %.cu,$(CUDA_SOURCES))) $(filter-out %.cu.o,$(EMULATED))
	@echo "LINK $@" && $(CXX) $(LDFLAGS) $(EMULATION_COVERAGE) -shared -Wl,-z,defs -o $@ $^ -lboost_context
$(RACES)/%.cu.o: %.cu
	@mkdir -p $(@D) && echo "CXX  $< (races)"
	@$(CXX) $(EMULATION_CXXFLAGS) -fsanitize=thread -x c++ -c -o $@ $<
$(EMULATION)/tests/emulation/races.cc.o: CXXFLAGS += -O2 # called at each access
$(patsubst %,$(EMULATION)/tests/emulation/async_%.cc.o,block products): CXXFLAGS += -O2 # what the tensor cores do
.PHONY: races
races: $(if $(filter debug,$(V)),$(RACES)/libshoal_cuda.so)

# And beside it the PTX that nvcc makes of the kernels with inline assembly (tests/ptx/compare.cc).
PTX := build/ptx
PTX_SOURCES := $(shell grep -lE '"kernels/cuda/(matrix|attention_tile|hopper)\.h"' kernels/cuda/*.cu)
PTX_TEXTS := $(if $(NVCC),$(PTX_SOURCES:kernels/cuda/%.cu=$(PTX)/%.ptx))
PTX_COMPILE = $(NVCC) $(NVCC_COMMON) -ptx
PTX_ARCH = $(if $(shell grep -l 'hopper\.h"' $(1)),90a,80)
$(PTX)/%.ptx: kernels/cuda/%.cu
	@mkdir -p $(@D) && echo "NVCC $< (PTX)"
	@$(PTX_COMPILE) -arch=sm_$(call PTX_ARCH,$<) -o $@ $<
-include $(wildcard $(PTX)/*.d)
PTX_MACHINE := $(patsubst %,$(EMULATION)/tests/ptx/%.cc.o,statements program forms arithmetic memory warp_instructions barriers bulk_copies warpgroup register_pool grid)
$(EMULATION)/tests/ptx/%.cc.o: CXXFLAGS += -O2 # it interprets
$(BUILD)/ptx/libshoal_cuda.so: $(EMULATED) $(PTX_MACHINE) $(patsubst %,$(EMULATION)/tests/ptx/%.cc.o,symbols compare)
	@mkdir -p $(@D) && echo "LINK $@"
	@$(CXX) $(LDFLAGS) $(EMULATION_COVERAGE) -shared -Wl,-z,defs -o $@ $^ -lboost_context
$(BUILD)/ptx/instructions: $(PTX_MACHINE) $(patsubst %,$(EMULATION)/tests/ptx/%.cc.o,instruction_test instructions async_instructions)
	@mkdir -p $(@D) && $(CXX) $(LDFLAGS) -o $@ $^
.PHONY: ptx
ptx: $(PTX_TEXTS) $(addprefix $(BUILD)/ptx/,instructions $(if $(filter debug,$(V)),libshoal_cuda.so))
	@rm -f $(filter-out $(PTX_TEXTS),$(wildcard $(PTX)/*.ptx)) # of sources of another day: the library runs all that lies there

EMULATION_TESTS := $(patsubst %.cu,$(BUILD)/%,$(wildcard tests/emulation/test_*.cu))
$(EMULATION_TESTS): $(BUILD)/tests/emulation/%: $(EMULATION)/tests/emulation/%.cu.o $(BUILD)/tests/support.c.o $(EMULATED)
	@mkdir -p $(@D) && $(CXX) $(LDFLAGS) $(EMULATION_COVERAGE) -o $@ $^ -lboost_context -lcmocka

# NCCL likewise: it is a library of its own
$(EMULATION)/libnccl.so.2: $(wildcard tests/emulation/nccl*.[ch]) agent/comm/nccl_api.h
	@mkdir -p $(@D) && echo "LINK $@"
	@$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -o $@ $(filter %.c,$^)
$(patsubst %.c,$(BUILD)/%,$(wildcard tests/agent/test_comm_nccl*.c)): | $(EMULATION)/libnccl.so.2

.PHONY: emulation
emulation: $(EMULATION)/libnccl.so.2 $(if $(filter tsan fuzz,$(V)),,$(EMULATION)/libshoal_cuda.so $(EMULATION_TESTS))
