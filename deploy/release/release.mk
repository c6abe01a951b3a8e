# What people get: images, an installation with man pages, an archive, a tag. A part of the Makefile.

#> make image          OCI archives of shoal-agent, shoal-operator and, where nvcc is, shoal-agent with CUDA's libraries, in build/image
IMAGES := shoal-agent shoal-operator
# the full form of NAME:VERSION, which is what containerd looks for
REGISTRY := docker.io/library
image: image-small image-cuda
.PHONY: image-small image-cuda
image-small: cluster-deps
	@$(MAKE) --no-print-directory V=release $(addprefix build/release/,$(IMAGES))
	@mkdir -p build/image
	@for i in $(IMAGES); do deploy/image/pack.sh $(REGISTRY)/$$i:$(VERSION) build/image/$$i.tar build/release/$$i || exit; done
# With NVIDIA's libraries of the same CUDA as the toolkit; what is fetched of them is kept.
CUDA_MAJOR = $(firstword $(subst ., ,$(NVCC_VERSION)))
WHEELS ?= $(HOME)/.cache/shoal/wheels
image-cuda: cluster-deps
ifneq ($(CUDA_MAJOR),13)
	@echo "no nvcc of CUDA 13, whose libraries deploy/image/nvidia.txt names: shoal-agent:$(VERSION)-cuda13 is left out"
else
	@deploy/image/wheels.sh fetch "$(WHEELS)"
	@$(MAKE) --no-print-directory V=release build/release/shoal-agent gpu
	@mkdir -p build/image
	@deploy/image/pack.sh $(REGISTRY)/shoal-agent:$(VERSION)-cuda13 build/image/shoal-agent-cuda13.tar build/release/shoal-agent "$(WHEELS)"
endif

# The man pages are what the programs say of themselves.
MAN := build/release/man
COMMANDS = $(shell sed -n 's/^    {"\([a-z]*\)", ".*_command},$$/\1/p' cli/main.c)
MAN_PAGES := $(patsubst %,$(MAN)/%.1,shoal shoal-agent shoal-operator)
SUMMARY_shoal := training jobs on one machine, a look at those of a cluster, and tools on checkpoints and data
SUMMARY_shoal-agent := sharded training, one process per GPU
SUMMARY_shoal-operator := controller of PyTorchJobs on Kubernetes
$(MAN)/%.1: build/release/% deploy/release/man.sh base/contract.h
	@mkdir -p $(@D) && echo "MAN  $@"
	@deploy/release/man.sh $< "$(SUMMARY_$*)" $(VERSION) $(if $(filter shoal,$*),$(COMMANDS)) >$@.part && mv $@.part $@

#> make install        release build, man pages and docs into $(DESTDIR)$(PREFIX), which is /usr/local; make uninstall
PREFIX ?= /usr/local
INSTALLED := $(DESTDIR)$(PREFIX)
PAGES := README.md LICENSE CHANGELOG.md SECURITY.md
.PHONY: install uninstall dist release programs-and-man
programs-and-man: $(if $(filter release,$(V)),all $(MAN_PAGES))
install:
	@$(MAKE) --no-print-directory V=release programs-and-man
	@install -d $(INSTALLED)/bin $(INSTALLED)/share/man/man1 $(INSTALLED)/share/doc/shoal
	@install -m 755 $(addprefix build/release/,shoal shoal-agent shoal-operator) $(INSTALLED)/bin
	@ln -sf shoal $(INSTALLED)/bin/kubectl-shoal # kubectl's plugin `kubectl shoal`
	@[ ! -e build/release/libshoal_cuda.so ] || install -D -m 644 -t $(INSTALLED)/lib/shoal build/release/libshoal_cuda.so
	@install -m 644 $(MAN_PAGES) $(INSTALLED)/share/man/man1
	@install -m 644 $(PAGES) $(INSTALLED)/share/doc/shoal
	@cd docs && find . -type f -exec install -D -m 644 {} $(abspath $(INSTALLED))/share/doc/shoal/docs/{} \;
uninstall:
	rm -f $(addprefix $(INSTALLED)/bin/,shoal shoal-agent shoal-operator kubectl-shoal) $(addprefix $(INSTALLED)/share/man/man1/,$(notdir $(MAN_PAGES)))
	rm -rf $(INSTALLED)/lib/shoal $(INSTALLED)/share/doc/shoal

#> make dist           build/shoal-VERSION.tar.gz of the last commit: the same bytes on every machine
dist:
	@mkdir -p build
	@git -c tar.umask=0022 archive --format=tar --prefix=shoal-$(VERSION)/ HEAD | gzip -n -9 >build/shoal-$(VERSION).tar.gz
	@echo "build/shoal-$(VERSION).tar.gz"

#> make release        checks that VERSION can be released, makes the archive and the tag vVERSION (docs/versions.md)
release:
	@deploy/release/check.sh $(VERSION)
	@$(MAKE) --no-print-directory dist
	@git tag -a v$(VERSION) -m "Shoal $(VERSION)" && echo "tagged v$(VERSION): git push origin v$(VERSION)"
