# SPDX-License-Identifier: Apache-2.0
# Builds, demonstrates and checks cuwhy. `make help` lists the targets.

VERSION := $(shell cat VERSION)
MACHINE := $(shell uname -m)
B       := build
PREFIX  ?= /usr/local
DESTDIR ?=
SAN     ?=
CC      ?= gcc
# of programs that only the build runs
HOSTCC  ?= $(if $(filter $(MACHINE),$(shell uname -m)),$(CC),gcc)
PYTHON  ?= python3
CHARTS  ?= auto
# what runs a program that was built for another processor
RUN     ?=

WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
ifeq ($(DEVELOPER),1)
WARN    += -Werror
endif
CFLAGS  ?= -O2 -g
CPP     := -D_GNU_SOURCE -DCUWHY_VERSION='"$(VERSION)"' -Iinclude -Isrc -I. -I$(B)
ALL_C   := -std=gnu11 $(WARN) $(CPP) -MMD -MP $(CFLAGS) -ffile-prefix-map=$(CURDIR)=.
ifneq ($(SAN),)
# sanitizers: everything but the recorder, which lives inside other people's programs
B       := build-san
SANFLAG := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
# tests preload libraries of their own in front of cuwhy
export ASAN_OPTIONS := verify_asan_link_order=0
endif

# One line of progress; V=1 shows the commands instead. TOTAL is how many steps there will be, if that was counted.
ifeq ($(V),)
Q := @
say = @$(eval STEPS += x)sh tools/progress.sh $(words $(STEPS)) '$(TOTAL)' '$(1)' '$(2)'
endif

LIB_SRC := $(sort $(filter-out %/probe_main.c src/knowledge/compile/%,$(shell find src/base src/writes src/allocator src/probe src/compat src/formats src/case src/knowledge src/read src/find src/verdict src/show -name '*.c')))
CMD_SRC := $(sort $(wildcard src/cmd/*.c src/run/*.c src/fit/*.c))
REC_SRC := $(sort $(wildcard src/recorder/*.c src/recorder/*/*.c)) src/recorder/arch_$(MACHINE).S
REDIRECT_SRC := $(sort $(wildcard src/redirect/*.c)) src/redirect/arch_$(MACHINE).S
SIM_SRC := $(sort $(wildcard src/sim/cuda/*.c))
# stand-ins for NVIDIA's other libraries: one for each line of the list whose folder exists
STANDIN_LIST := src/sim/common/standins.list
STANDINS := $(shell while read -r dir name node; do [ ! -d src/sim/$$dir ] || echo $(B)/sim/$$name; done < $(STANDIN_LIST))
FIT_PARTS := $(patsubst src/%,$(B)/%,$(wildcard src/fit/*.py))
SIM_PARTS := $(patsubst %,$(B)/sim/%,libcuda.so.1 libnvidia-ml.so.1 libcuwhy-sim-loader.so) $(STANDINS)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o) $(B)/obj/src/knowledge/kb_blob.o $(B)/obj/src/show/page_blob.o
# What makes the knowledge base that is linked in runs here, wherever cuwhy will run. Of the case it has the names of facts alone: the rest,
# and what that needs, is dropped.
COMPILE_SRC := $(sort $(wildcard src/knowledge/compile/*.c))
COMPILE_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out %/main.c,$(COMPILE_SRC)))
HOST_OBJ := $(patsubst %.c,$(B)/host/%.o,$(COMPILE_SRC) src/knowledge/find.c src/knowledge/likeness.c $(patsubst %,src/base/%.c,buf err map mem pool str) \
	$(patsubst %,src/case/%.c,case knowledge known_message) src/compat/cuda_errors.c)
# `cuwhy run` refuses what the simulated GPU would refuse
CMD_OBJ := $(CMD_SRC:%.c=$(B)/obj/%.o) $(B)/obj/src/sim/cuda/sim_spec.o $(B)/obj/src/sim/cuda/sim_cards.o
REC_OBJ := $(patsubst %.S,$(B)/obj/%.o,$(REC_SRC:%.c=$(B)/obj/%.o))
# readers of GPU code are shared with the CLI, but built for a shared library
SIM_FORMATS := elf_sections fatbin_entry gpu_code gpu_code_cubin gpu_code_ptx
REDIRECT_OBJ := $(patsubst %.S,$(B)/obj/%.o,$(REDIRECT_SRC:%.c=$(B)/obj/%.o))
SIM_OBJ := $(SIM_SRC:%.c=$(B)/obj/%.o) $(SIM_FORMATS:%=$(B)/obj/sim_formats/%.o)
PROBE_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out src/base/json.c src/base/format.c $(wildcard src/base/private*.c),$(sort $(wildcard src/base/*.c src/probe/*.c))))
# these libraries are linked in, so that the program starts on machines that do not have them
LDLIBS  := -Wl,-Bstatic -ljansson -liberty -lz -llzma -lzstd -Wl,-Bdynamic -ldl -lm
# and what keeps glibc 2.28 sufficient (src/portable/portable.h); sanitizers bring their own versions of these functions
ifeq ($(SAN),)
OLD_DL      := -Wl,--push-state,--no-as-needed -l:libdl.so.2 -Wl,--pop-state
OLD_PTHREAD := -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -Wl,--pop-state
OLD_PROGRAM := $(patsubst %,$(B)/obj/src/portable/%.o,start libdl stat numbers)
OLD_LIBRARY := $(patsubst %,$(B)/obj/src/portable/%.o,libdl stat threads numbers)
OLD_NUMBERS := $(B)/obj/src/portable/numbers.o
OLD_LIBM    := $(B)/obj/src/portable/libm.o
endif

# Most tests use the simulated GPU to have a GPU: what their programs write is what they look at. rules_writes.py is about the rest.
export CUWHY_WRITES_MODE ?= real

.PHONY: all demo check check-unit check-cli check-e2e check-torture check-fuzz check-dumps check-snap check-doctor check-text check-messages words check-advice check-job check-histories check-launchers check-python check-frameworks check-wheel check-demo check-page check-network check-newcomer check-spelling check-packages check-aarch64 check-browser check-gpu check-all \
	check-tree check-contributing check-san check-asan check-tsan check-inject check-holders check-soak check-kills soak check-wild check-wild-own check-wheels check-standins check-standin-exports check-torch check-growing check-sizes check-fixes check-remedies check-stacks check-memory check-wheel-archs check-doctor-wheels bench bench-gpu compare-gpu bench-replay bench-snapshot bench-text fuzz install clean deps help
.DELETE_ON_ERROR:

# on every processor, unless -j says how many
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
all: deps
	@$(MAKE) --no-print-directory $(JOBS) parts TOTAL=$$($(MAKE) --no-print-directory -n parts 2>/dev/null | grep -c '^sh tools/progress.sh')
	@sh tools/progress.sh end

help:
	@sed -n 's/^## //p' Makefile

## make             build everything under build/ (on Debian, as root, installs missing packages)
## make demo        two failing programs explained, and whether a third one fits, on simulated GPUs, with PyTorch where it is installed; no GPU needed
## make check       all tests that need no GPU, side by side; -k: go on after a failure; build/check has what each part printed
## make check-all   the same, plus the address and undefined-behavior sanitizers
## make check-inject  every system call of the recorder fails in turn, with five errors: the program must not notice
## make check-holders  reads the objects of programs that change them meanwhile, and of memory that lies, under sanitizers (RUNS=200)
## make check-torch  real PyTorch on the simulated GPU: the programs of tests/gpu; installs a wheel into ~/.cache/cuwhy (1.2 GB)
## make check-frameworks  the Python package with Lightning, Transformers, IPython and pytest from PyPI, on that PyTorch
## make check-fixes  changes of source code that FIX advises, made in copies and run: none of them breaks a training
## make check-remedies  what `cuwhy fit` says makes a program fit, tried by hand
## make check-growing  40 trainings that leak or settle late, written without a look at cuwhy: does `cuwhy fit` tell them apart, and when do they fail
## make check-sizes  programs that do not fit: does the size that is named run, and one more not; batches that differ in size. Half an hour
## make check-memory SEED=… COUNT=…  programs that run out of memory, made from a seed, likewise; their labels are true by construction
## make soak        random programs on the simulated GPU with and without cuwhy, for an hour (SECONDS=3600 SEED=1), partly under sanitizers
## make check-kills  kills programs at random moments (KILLS=10000): every recording must open
## make check-histories  51 planted histories of a job of 1,024 ranks with skewed clocks, and the time for 4,096 (in small: check-job)
## make check-launchers  torchrun, mpirun, Slurm, Ray, Kubernetes: the rank that fails must be named in each; says what to install
## make check-gpu   the programs in tests/gpu on a real GPU with the installed PyTorch
## make check-wild WILD=folder  other people's suites and programs (PyTorch, Triton, CuPy, nanoGPT), fetched into that folder,
##                  with and without cuwhy on a real GPU (WILD_OPTIONS="--seconds 600 --jobs 8"); says how to fetch what is missing
## make check-wheels  the symbols that the recorder uses, in one PyTorch wheel of each release (WHEELS="2.4 2.5");
##                  downloads several gigabytes with pip
## make check-standins  the stand-ins for NVIDIA's libraries against what these wheels import; also downloads
## make check-stacks  vLLM and others, unmodified, on the simulated GPU, against arithmetic; downloads 10 GB (STACK=name: one row)
## make check-standin-exports  whether they have every function of the originals that returns a status; downloads 3.5 GB
## make check-wheel-archs  the GPU architectures in these wheels against the table of wheels; also downloads
## make check-doctor-wheels  what the doctor says about some of them, on old and new GPUs and drivers; also downloads
## make bench       cost of recording on the simulated GPU
## make bench-gpu   cost of recording on a real GPU with PyTorch
## make compare-gpu  cuwhy compared with compute-sanitizer, core dumps, CUDA_LAUNCH_BLOCKING and PyTorch's own tools, on a real GPU
## make bench-text  reading a 2 GB log, compared with grep and ripgrep (MEGABYTES=2048)
## make bench-replay  playing back ten million events of PyTorch's allocator
## make bench-snapshot  reading a memory snapshot, compared with PyTorch's own viewer
## make fuzz        fuzz the reader of recordings (WHAT=trace) with libFuzzer (SECONDS=600); WHAT=dump: core dumps, snapshot: memory snapshots, fatbin: libraries, code: GPU code, pyenv: environments, bundle: bundles, host: a machine's files, text: logs, live: the memory of a process that runs, job: files of a job
## make wheel       build/cuwhy-….whl: pip install it anywhere with glibc 2.28 or newer; no compiler, no other package
## make sdist       build/cuwhy-….tar.gz: what pip builds the wheel from
## make deb         build/cuwhy_….deb, for Debian and Ubuntu
## make check-packages  all three: auditwheel, twine and lintian have nothing to say, pip builds the wheel from the sources, twice the same bytes
## make check-newcomer  the tasks of a newcomer who has read README.md alone, on bare Debian 11, 12 and 13; downloads them (SUITES="bookworm"); as root
## make check-aarch64  the cases on the simulated GPU, built for aarch64 and run by qemu-user; make wheel-aarch64: the wheel for it
## make static      build/cuwhy-static: just the program, fully statically linked
## make check-spelling  misspelled words, by codespell
## make format      format the C files (clang-format-14)
## make format-web  format the report page's JavaScript
## make check-decided  the rules about texts that decide nothing on reports of others: CASES=file or folder has more reports than the repository
## make docs        docs/causes, from kb
## make pictures    docs/pictures, from recordings of the programs in docs/examples (RECORDINGS=folder)
## make install     into $(DESTDIR)$(PREFIX); make uninstall takes it away again
##
## make charts      build the report page with charts: fetches uPlot with pip or npm, which `make` does, too, but does not insist on
## CHARTS=no  build the report page without charts
## SAN=address,undefined  build and check with sanitizers;  V=1  show commands;  DEVELOPER=1  -Werror

deps:
	@CHARTS=$(CHARTS) sh tools/deps.sh

.PHONY: parts core
parts: core $(B)/completions/cuwhy.fish $(SIM_PARTS)
core: $(B)/cuwhy $(B)/cuwhy-probe $(FIT_PARTS) $(B)/libcuwhy-rec.so $(B)/libcuwhy-writes.so $(filter-out $(STANDINS),$(SIM_PARTS)) $(B)/lib32/libcuwhy-rec.so $(B)/preload/made

.PHONY: standins
standins: $(SIM_PARTS)

$(B)/cuwhy: $(CMD_OBJ) $(LIB_OBJ) $(OLD_PROGRAM) $(OLD_LIBM)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SANFLAG) -rdynamic -o $@ $^ $(LDLIBS) $(OLD_DL)

comma := ,
# The same without a loader: for machines with another C library, rescue systems, empty containers.
STATIC_LIBS := -ljansson -liberty -lz -llzma -lzstd -lm \
	$(patsubst %,-Wl$(comma)--wrap=%,dlopen dlclose dlsym dlerror dladdr gnu_get_libc_version getpwuid)
.PHONY: static
static: all
	@$(MAKE) --no-print-directory $(B)/cuwhy-static
$(B)/cuwhy-static: $(CMD_OBJ) $(LIB_OBJ) $(B)/obj/src/portable/alone.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -static-pie -o $@ $^ $(STATIC_LIBS)

# Man pages and completions, from the tables that -h prints. The last file written is the target for all of them.
$(B)/completions/cuwhy.fish: $(B)/cuwhy
	$(call say,DOCS,$(B)/man $(B)/completions)
	$(Q)rm -rf $(B)/man && mkdir -p $(B)/man $(@D) && $(RUN) $< _document man > $(B)/man/cuwhy.1
	$(Q)for c in $$($(RUN) $< _document commands); do $(RUN) $< _document man $$c > $(B)/man/cuwhy-$$c.1 || exit 1; done
	$(Q)$(RUN) $< _document bash > $(@D)/cuwhy.bash && $(RUN) $< _document zsh > $(@D)/_cuwhy && $(RUN) $< _document fish > $@

# NVML may hang or crash, so it is queried in a process of its own.
$(B)/cuwhy-probe: $(PROBE_OBJ) $(OLD_PROGRAM)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SANFLAG) -o $@ $^ -ldl $(OLD_DL)

# The recorder needs only libc; C++ exceptions pass through some of its wrappers.
REC_FLAGS := -fPIC -fvisibility=hidden -fexceptions -ftls-model=initial-exec
$(B)/obj/src/recorder/%.o: src/recorder/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(REC_FLAGS) -c $< -o $@
$(B)/obj/src/recorder/%.o: src/recorder/%.S
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D) && $(CC) -c $< -o $@
REC_MAP := src/recorder/arch_$(MACHINE).map
$(B)/libcuwhy-rec.so: $(REC_OBJ) $(OLD_NUMBERS) $(REC_MAP)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-z,now,-z,relro,-z,defs \
		-Wl,--version-script=$(REC_MAP) -o $@ $(REC_OBJ) $(OLD_NUMBERS) -ldl

# What gives dry runs their own view of the files; a guest, too. Null pointers are checked although headers say that there are none.
$(B)/obj/src/redirect/%.o: src/redirect/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) -U_FORTIFY_SOURCE -fno-delete-null-pointer-checks -fPIC -fvisibility=hidden -ftls-model=initial-exec -c $< -o $@
$(B)/obj/src/redirect/%.o: src/redirect/%.S
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D) && $(CC) -c $< -o $@
$(B)/libcuwhy-writes.so: $(REDIRECT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-z,now,-z,relro,-z,defs -o $@ $^ -ldl $(OLD_DL)

# A 32-bit library that does nothing, so that the loader does not complain when 32-bit children start: neither as one to preload, nor as
# one that audits (version 0: it does not want to).
$(B)/lib32/libcuwhy-rec.so: Makefile
	$(Q)mkdir -p $(@D)
	$(Q)echo 'int la_version(int version); int la_version(int version) { return version & 0; }' | $(CC) -m32 -shared -nostdlib -fPIC -x c - -o $@ 2>/dev/null || \
		{ : > $(B)/lib32/unavailable; touch $@.none; }

# Two trees of links for LD_PRELOAD=…/$$LIB/libcuwhy-rec.so and LD_AUDIT (src/run/run_env.c): what $$LIB becomes in 64-bit and in 32-bit
# programs. "lib" is for 32 bits on Debian (where nothing uses it), Fedora and SUSE, for 64 on Arch and Nix.
PRELOAD64 := lib-is-32/lib64 lib-is-32/lib/$(MACHINE)-linux-gnu lib-is-64/lib
PRELOAD32 := lib-is-32/lib lib-is-32/lib32 lib-is-32/lib/i386-linux-gnu lib-is-64/lib32 lib-is-64/lib/i386-linux-gnu
$(B)/preload/made: $(B)/libcuwhy-rec.so $(B)/libcuwhy-writes.so $(B)/lib32/libcuwhy-rec.so $(B)/sim/libcuwhy-sim-loader.so Makefile
	$(Q)rm -rf $(@D) && mkdir -p $(@D)
	$(Q)cd $(@D) && for d in $(PRELOAD64); do mkdir -p $$d && ln -rs ../libcuwhy-rec.so ../libcuwhy-writes.so ../sim/libcuwhy-sim-loader.so $$d/; done
	$(Q)cd $(@D) && [ ! -f ../lib32/libcuwhy-rec.so ] || for d in $(PRELOAD32); do \
		mkdir -p $$d && for n in libcuwhy-rec.so libcuwhy-writes.so libcuwhy-sim-loader.so; do ln -rs ../lib32/libcuwhy-rec.so $$d/$$n; done; done
	$(Q)touch $@

$(B)/obj/src/portable/%.o: src/portable/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) -fPIC -c $< -o $@
$(B)/obj/src/sim/%.o: src/sim/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) -fPIC -fvisibility=hidden -c $< -o $@
$(B)/obj/sim_formats/%.o: src/formats/%.c
	$(call say,CC,$< (sim))
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) -include base/banned.h -fPIC -fvisibility=hidden -c $< -o $@
$(B)/sim/libcuda.so.1: $(SIM_OBJ) $(OLD_LIBRARY)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) -shared -Wl,-z,now,-z,relro -Wl,-soname,libcuda.so.1 -Wl,--exclude-libs,ALL -o $@ $^ \
		-Wl,-Bstatic -lzstd -Wl,-Bdynamic -lpthread $(OLD_DL) $(OLD_PTHREAD)

$(B)/sim/libnvidia-ml.so.1: $(sort $(wildcard src/sim/nvml/*.c)) src/sim/cuda/sim_cards.c src/sim/cuda/sim_spec.c $(OLD_LIBRARY) src/sim/cuda/sim_models.def
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) -fPIC -fvisibility=hidden -shared -Wl,-soname,libnvidia-ml.so.1 -MF $(B)/obj/sim_nvml.d \
		-o $@ $(filter-out %.def,$^) -ldl $(OLD_DL) $(OLD_PTHREAD)

standin_word  = $(shell sed -n 's/^\([a-z_0-9]*\) *$(notdir $(1)) *\([^ ]*\)$$/\$(2)/p' $(STANDIN_LIST))
define standin_rules
$(1): $(patsubst src/%.c,$(B)/obj/standin/$(notdir $(1))/%.o,$(sort $(wildcard src/sim/common/*.c src/sim/$(call standin_word,$(1),1)/*.c))) $(OLD_LIBRARY) $(B)/sim/libcuda.so.1
	$$(call say,LINK,$$@)
	$$(Q)echo "$(filter-out -,$(call standin_word,$(1),2)) { global: *; };" > $(B)/obj/standin/$(notdir $(1)).map
	$$(Q)$$(CC) $$(CFLAGS) -shared -Wl,-soname,$(notdir $(1)) -Wl,-z,now,-z,defs -Wl,-rpath,'$$$$ORIGIN' -Wl,--version-script=$(B)/obj/standin/$(notdir $(1)).map -o $$@ $$^ -lm $$(OLD_DL) $$(OLD_PTHREAD)
$(B)/obj/standin/$(notdir $(1))/%.o: src/%.c
	$$(call say,CC,$$< ($(notdir $(1))))
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(ALL_C) -fPIC -fvisibility=hidden -DSONAME_MAJOR=$(lastword $(subst ., ,$(1))) -c $$< -o $$@
endef
$(foreach s,$(STANDINS),$(eval $(call standin_rules,$(s))))

$(B)/sim/libcuwhy-sim-loader.so: src/sim/loader/loader.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) $(B)/obj && $(CC) $(filter-out --coverage,$(ALL_C)) -ffreestanding -fno-stack-protector -fPIC -fvisibility=hidden -shared \
		-nostdlib -Wl,-z,defs,-z,now -MF $(B)/obj/sim_loader.d -o $@ $<

$(B)/obj/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) -include base/banned.h $(SANFLAG) -c $< -o $@

# The commit goes into --version; its file changes only when the commit does.
COMMIT := $(if $(wildcard .git),$(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null))
$(B)/obj/src/cmd/cmd_version.o: ALL_C += -DCUWHY_COMMIT='"$(COMMIT)"'
$(B)/obj/src/cmd/cmd_version.o: $(B)/commit
$(B)/commit: always
	@mkdir -p $(@D) && { [ "$$(cat $@ 2>/dev/null)" = "$(COMMIT)" ] && [ -f $@ ] || echo "$(COMMIT)" > $@; }
.PHONY: always
# and what has the version in it is compiled again when that changes
$(patsubst %.c,$(B)/obj/%.o,$(shell grep -rl --include='*.c' CUWHY_VERSION src)): VERSION

# Knowledge base: the signs, and one file per cause, with the program that shows it. src/knowledge/compile makes of them what is linked in.
# Adding one needs no C.
KB     := $(sort $(wildcard kb/signs/*.kb)) $(sort $(wildcard kb/causes/*.md))
SHOWN  := $(sort $(wildcard $(shell sed -n 's/^program: *//p' kb/causes/*.md)))
$(B)/kb.text: $(KB) $(SHOWN) $(B)/kb.files tools/make_kb.sh tools/program_text.sed Makefile
	$(Q)mkdir -p $(@D) && sh tools/make_kb.sh $(KB) > $@
# The list of files, so that a deleted one leaves the build; it changes only when the list does.
$(B)/kb.files: always
	@mkdir -p $(@D) && { echo "$(KB)" | cmp -s - $@ || echo "$(KB)" > $@; }
$(B)/kb.blob: $(B)/kb.text $(B)/host/compile
	$(Q)$(B)/host/compile $< $@
$(B)/obj/src/knowledge/kb_blob.o: src/knowledge/kb_blob.S $(B)/kb.blob
	$(Q)mkdir -p $(@D) && $(CC) -DKB_BLOB='"$(B)/kb.blob"' -c $< -o $@
$(B)/host/%.o: %.c
	$(call say,CC,$< (host))
	$(Q)mkdir -p $(@D) && $(HOSTCC) -std=gnu11 $(WARN) $(CPP) -MMD -MP -O1 -ffunction-sections -include base/banned.h -c $< -o $@
$(B)/host/compile: $(HOST_OBJ)
	$(call say,LINK,$@)
	$(Q)$(HOSTCC) -Wl,--gc-sections -o $@ $^

# The report page: web/src put together into one file.
PAGE := $(B)/report.html
$(PAGE): $(sort $(wildcard web/src/*)) web/uplot.license tools/page.py
	$(call say,PAGE,$@)
	$(Q)mkdir -p $(@D) && $(PYTHON) tools/page.py build/web $@ --charts $(CHARTS)
.PHONY: charts
charts:
	@rm -f $(PAGE) && $(MAKE) --no-print-directory CHARTS=yes all
$(B)/obj/src/show/page_blob.o: src/show/page_blob.S $(PAGE)
	$(Q)mkdir -p $(@D) && $(CC) -DPAGE_BLOB='"$(PAGE)"' -c $< -o $@

# What is in the programs that `cuwhy fit` runs.
$(FIT_PARTS): $(B)/%: src/%
	$(Q)mkdir -p $(@D) && cp $< $@

# ---- the Python wheel ------------------------------------------------------------------------------

WHEEL := $(B)/cuwhy-$(VERSION)-py3-none-manylinux_2_28_$(MACHINE).whl
.PHONY: wheel
wheel: all
	@$(MAKE) --no-print-directory $(WHEEL)
$(WHEEL): $(B)/cuwhy $(B)/cuwhy-probe $(FIT_PARTS) $(B)/libcuwhy-rec.so $(B)/libcuwhy-writes.so $(SIM_PARTS) \
		$(B)/lib32/libcuwhy-rec.so $(B)/preload/made $(B)/completions/cuwhy.fish $(wildcard python/cuwhy/*) tools/wheel.py README.md LICENSE web/uplot.license
	$(call say,WHEEL,$@)
	$(Q)MACHINE=$(MACHINE) $(PYTHON) tools/wheel.py $(B) $(VERSION)

# ---- the source distribution ------------------------------------------------------------------------

.PHONY: sdist
sdist:
	@mkdir -p $(B) && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tools/sdist.py $(B) $(VERSION)

# ---- the Debian package ------------------------------------------------------------------------------

.PHONY: deb
deb: all
	$(call say,DEB,$(B))
	+$(Q)MACHINE=$(MACHINE) $(PYTHON) tools/deb.py $(B) $(VERSION)

# ---- tests ----------------------------------------------------------------------------------------

# All unit tests are one program; each file of them is a group in it (tests/unit/unit.c).
UNIT     := $(B)/tests/unit
UNIT_OBJ := $(patsubst %.c,$(B)/obj/%.o,tests/unit/unit.c $(sort $(wildcard tests/unit/test_*.c)))
$(UNIT): $(UNIT_OBJ) $(LIB_OBJ) $(COMPILE_OBJ) $(filter-out %/main.o,$(CMD_OBJ))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(SANFLAG) -o $@ $^ -lcmocka $(LDLIBS) -lpthread
# not optimized: they are compiled more often than they are run, and what they test is as it is shipped
UNIT_CC = $(CC) $(ALL_C) -O0 $(SANFLAG) -Itests/unit -include tests/unit/unit.h
$(B)/obj/tests/unit/test_%.o: tests/unit/test_%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(UNIT_CC) -c $< -o $@

# Parts of the recorder that can be tested without a separate process: here, sanitizers watch them, too. Each group has its own of them, beside
# stand-ins for the rest of the recorder (rec_make.h); none of their names is another group's.
$(B)/obj/tests/recorder/%.o: src/recorder/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(REC_FLAGS) $(SANFLAG) -c $< -o $@
REC_PARTS := $(addprefix $(B)/obj/tests/recorder/,rec_site.o rec_live.o rec_totals.o rec_timeline.o rec_epochs.o rec_events.o rec_event_log.o rec_copies.o)
REC_GROUPS := $(patsubst %.c,$(B)/obj/%.o,$(shell grep -ls '"rec_make.h"' tests/unit/test_*.c))
$(REC_GROUPS): $(B)/obj/tests/unit/test_%.o: tests/unit/test_%.c $(REC_PARTS)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(UNIT_CC) -fvisibility=hidden -c $< -o $(@:.o=.alone.o) -MF $(@:.o=.d) -MT $@ && \
		$(CC) -r -nostdlib -o $@ $(@:.o=.alone.o) $(REC_PARTS) && objcopy --localize-hidden $@

FUZZERS := $(patsubst %,$(B)/tests/fuzz_%,trace replay dump run snapshot fatbin code pyenv bundle host text live job)
# What the parts of the check need, besides the program. BUILT_BEFORE: tests/parts.py runs them after all was built, and then none builds
# anything, although a source may have been edited meanwhile: other parts use the old one.
built    = $(if $(BUILT_BEFORE),,$(1))
BUILT   := $(FUZZERS) $(B)/tests/many $(B)/tests/hide $(B)/tests/libinject_job.so $(if $(SAN),,$(WHEEL) $(B)/cuwhy-static)

# Every suite records the rules that matched in it; a rule that never matched fails the check: add a case or remove the rule.
FIRED := $(abspath $(B))/rules-fired
# What needs a package that cannot be had (no network, another system) is skipped aloud, and named again at the end of the check.
NEEDS   := sh tools/deps.sh
skipped  = { mkdir -p $(B) && echo "SKIPPED: $(1)" | tee -a $(B)/skipped; }
# no test may run a stale module from Python's cache, which compares times of one second
export PYTHONDONTWRITEBYTECODE := 1
# The parts of the check run beside each other (tests/parts.py), the longest first; what they need is built before, at once.
PARTS := e2e text browser unit advice torture cli tree tsan python wheel contributing wild-own doctor job snap network soak fuzz dumps demo page messages
check: deps
	@mkdir -p $(B) && : > $(FIRED) && chmod 666 $(FIRED)	# some of the tests run as another user
	@rm -f $(B)/skipped
	@for what in unit python browser format; do $(NEEDS) $$what 2>/dev/null || :; done	# two installations at a time get into each other's way
	@$(MAKE) --no-print-directory $(JOBS) parts $(BUILT) $$($(NEEDS) unit 2>/dev/null && echo $(UNIT))
	@status=0; MAKE='$(MAKE)' CUWHY_RULES_FIRED=$(FIRED) $(PYTHON) tests/parts.py $(B)/check $(PARTS:%=check-%) || status=$$?; \
		[ ! -s $(B)/skipped ] || { echo "Not everything was checked:" && sed 's/^/  /' $(B)/skipped; }; exit $$status
	@$(call rules_fired)
	@$(PYTHON) tools/check_rules.py --decided $(B)/decided

# unit tests match rules that nothing else does
rules_fired = if grep -qs '^SKIPPED: unit' $(B)/skipped; then echo "SKIPPED: rules that never match, as unit tests did not run"; else $(PYTHON) tools/check_rules.py $(FIRED) --strict; fi

check-unit: parts
	@if $(NEEDS) unit; then $(call built,$(MAKE) --no-print-directory $(UNIT) &&) $(UNIT) -j $$(nproc) && $(PYTHON) tests/run --build $(B) --self-test; \
		else $(call skipped,unit tests$(comma) there is no libcmocka-dev); fi

check-cli: parts
	@sh tests/cli/run.sh $(B)

check-e2e: parts
	@$(PYTHON) tests/e2e/run.py --build $(B)

check-torture: parts
	@sh tests/torture/run.sh $(B) $${ROUNDS:-1000}

check-fuzz: parts $(call built,$(FUZZERS))
	@$(B)/tests/fuzz_job tests/fuzz/corpus/job
	@$(B)/tests/fuzz_text tests/fuzz/corpus/text
	@$(B)/tests/fuzz_trace tests/fuzz/corpus/trace
	@$(B)/tests/fuzz_replay tests/fuzz/corpus/replay
	@$(B)/tests/fuzz_dump tests/fuzz/corpus/dump
	@$(B)/tests/fuzz_run tests/fuzz/corpus/run
	@$(B)/tests/fuzz_snapshot tests/fuzz/corpus/snapshot
	@$(B)/tests/fuzz_fatbin tests/fuzz/corpus/fatbin
	@$(B)/tests/fuzz_code tests/fuzz/corpus/code
	@$(B)/tests/fuzz_pyenv tests/fuzz/corpus/pyenv
	@$(B)/tests/fuzz_bundle tests/fuzz/corpus/bundle
	@$(B)/tests/fuzz_host tests/fuzz/corpus/host
	@$(B)/tests/fuzz_live tests/fuzz/corpus/live

check-dumps: parts
	@$(PYTHON) tests/dump/check_real.py $(B)

check-text: parts $(call built,$(B)/tests/many $(B)/tests/hide)
	@$(PYTHON) tests/text/check.py $(B)

# Which rules about texts decide nothing on reports of others (CASES=file or folder: more of these than the repository has); --list names them.
.PHONY: check-decided
check-decided: parts $(B)/tests/many
	@$(PYTHON) tests/text/check.py $(B) --only decided $(if $(CASES),--cases $(CASES))
	@$(PYTHON) tools/check_rules.py --decided $(B)/decided --list

# Every command that is advised, and the pages of the causes.
check-advice: parts
	@$(PYTHON) tests/commands/check.py $(B)

# The pages of the causes: after a cause or a sentence was added.
.PHONY: docs
docs: parts
	@$(PYTHON) tools/render_causes.py $(B)

# After texts were added: what their words say.
words:
	@$(PYTHON) tools/learn_words.py > $(B)/words.def && mv $(B)/words.def kb/words.def

# Planted histories of a job, in small: each once, 64 ranks
check-job: parts $(call built,$(B)/tests/libinject_job.so)
	@$(PYTHON) tests/job/histories.py $(B)/cuwhy --ranks 64 --large 512 --once
	@$(PYTHON) tests/job/hostile.py $(B)/cuwhy $(B)/tests/libinject_job.so
	@$(PYTHON) tests/job/inputs.py $(B)/cuwhy
	@$(PYTHON) tests/job/orders.py $(B)/cuwhy

$(B)/tests/libinject_job.so: tests/job/inject.c
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -fPIC $(WARN) -D_GNU_SOURCE -o $@ $< -ldl

# real launchers; those that are not installed are skipped
check-launchers: parts
	@sh tests/launchers/all.sh

check-histories: parts
	@$(PYTHON) tests/job/histories.py $(B)/cuwhy

# The tool that finds messages in packages, on a small one; tests/unit/test_messages.c checks what is kept of them.
check-messages:
	@$(PYTHON) tests/messages/check.py

check-snap: parts
	@$(PYTHON) tests/snap/check.py $(B)

# The Python package, with a fake PyTorch; and the wheel, installed into an empty environment.
check-python: parts
	@$(NEEDS) python || $(call skipped,tests of Python that need these packages)
	@CUWHY_PROGRAM=$(abspath $(B))/cuwhy PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/python/run.py

# TORCH=FOLDER: another PyTorch than that of check-torch.
check-frameworks: parts
	@$(PYTHON) tests/frameworks/get.py $(B)/frameworks || echo "frameworks: they could not be had; their tests are skipped"
	@$(PYTHON) tests/frameworks/run.py --build $(B) $(if $(TORCH),--torch $(TORCH))

check-wheel: parts
ifeq ($(SAN),)
	@$(NEEDS) python || $(call skipped,tests of the wheel that need these packages)
	@$(call built,$(MAKE) --no-print-directory $(WHEEL) $(B)/cuwhy-static)
	@$(PYTHON) tests/wheel/check.py $(B) $(WHEEL)
else
	@echo "wheel: skipped, a build with sanitizers is not shipped"
endif

check-page:
	@$(PYTHON) tests/page/check.py

# What the other checks download may fail: they say so, and go on.
check-network:
	@$(PYTHON) tests/network/check.py

# As root, with network and debootstrap: what README.md promises, on bare Debian 11, 12 and 13 (SUITES="bookworm").
check-newcomer:
	@$(NEEDS) newcomer
	@$(PYTHON) tests/newcomer/run.py $(SUITES)

check-demo: parts
	@PYTHON=$(PYTHON) $(PYTHON) tests/demo/check.py $(B)

# Builds everything twice, so it is not part of `check`.
check-packages: parts
	@CC='$(CC)' $(PYTHON) tests/packages/check.py $(B)

# Built for another processor, and run by an emulator on the simulated GPU. Downloads a small Debian for it (130 MB), once.
AARCH64_ROOT ?= $(HOME)/.cache/cuwhy/aarch64-bookworm
AARCH64_CC   := aarch64-linux-gnu-gcc --sysroot=$(AARCH64_ROOT) -B$(AARCH64_ROOT)/usr/lib/aarch64-linux-gnu
AARCH64_MAKE  = $(MAKE) --no-print-directory B=build/aarch64 MACHINE=aarch64 CC='$(if $(shell command -v ccache),ccache )$(AARCH64_CC)' RUN='qemu-aarch64-static -L $(AARCH64_ROOT)'
.PHONY: aarch64-root wheel-aarch64
aarch64-root:
	@sh tools/deps.sh aarch64
	@sh tests/aarch64/root.sh $(AARCH64_ROOT)
wheel-aarch64: aarch64-root
	@STRIP=aarch64-linux-gnu-strip $(AARCH64_MAKE) build/aarch64/cuwhy-$(VERSION)-py3-none-manylinux_2_28_aarch64.whl
check-aarch64: aarch64-root
	@$(AARCH64_MAKE) parts
	@CC='$(AARCH64_CC)' $(PYTHON) tests/aarch64/check.py build/aarch64 $(AARCH64_ROOT) $(NAMES)

check-doctor: parts
	@$(PYTHON) tests/doctor/check.py $(B)

# The pictures in docs/, from recordings of examples on a simulated GPU: RECORDINGS/leak, …
.PHONY: pictures
pictures: parts
	@test -n "$(RECORDINGS)" || { echo "make pictures RECORDINGS=FOLDER: the output of 'cuwhy run --gpu sim:h200 --out FOLDER/leak python docs/examples/leak.py' and the like" >&2; exit 2; }
	@sh tools/deps.sh browser
	@$(PYTHON) tools/pictures.py $(B) $(RECORDINGS)

# The report page in a real browser, and how its JavaScript is laid out.
check-browser: parts
	@if $(NEEDS) browser; then $(PYTHON) tests/browser/run.py $(B) || { [ $$? = 77 ] && $(call skipped,the page in a browser$(comma) it was built without charts); }; \
		else $(call skipped,the page in a browser$(comma) there is no chromium); fi
	@sh tools/prettier.sh --check $(WEB_JS) || { [ $$? = 3 ] && $(call skipped,the layout of JavaScript$(comma) there is no prettier); }

# Of line lengths alone tools/check_tree.sh takes care without Node.js.
WEB_JS := $(sort $(wildcard web/src/*.js))
.PHONY: format-web
format-web:
	@sh tools/prettier.sh --write $(WEB_JS)

$(B)/tests/fuzz_code: $(B)/obj/src/sim/cuda/sim_unpack.o
$(B)/tests/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/driver.c $(LIB_OBJ)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(SANFLAG) -o $@ $^ $(LDLIBS)

$(B)/tests/many $(B)/tests/hide: $(B)/tests/%: tests/text/%.c $(LIB_OBJ) $(COMPILE_OBJ)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(SANFLAG) -o $@ $^ $(LDLIBS)

# The recipes of CONTRIBUTING.md, in a copy of the tree.
check-contributing: parts
	@$(call built,if $(NEEDS) unit; then $(MAKE) --no-print-directory $(UNIT) $(B)/tests/many; fi)
	@$(PYTHON) tests/contributing/check.py $(B)

check-tree: parts
	@$(NEEDS) format || $(call skipped,the format of C files)
	@sh tools/check_tree.sh $(B)

# Not part of `check`: each version of codespell knows other words.
check-spelling:
	@command -v codespell >/dev/null || { echo "spelling: skipped, there is no codespell: pip install codespell"; exit 0; }; \
		codespell && echo "spelling: nothing found by codespell $$(codespell --version)"

.PHONY: format
format:
	@sh tools/deps.sh format
	@$(PYTHON) tools/format.py

# All of them run, also after one failed.
check-san:
	@$(MAKE) --no-print-directory SAN=address,undefined $(JOBS) parts
	@$(MAKE) --no-print-directory -k SAN=address,undefined check-unit check-cli check-fuzz check-asan

# The recorder's tables, used from many threads: its tests only, since the recorder itself lives in other people's programs.
check-asan:
	@sh tests/torture/tsan.sh address,undefined $(B)/tests/asan_rings && ASAN_OPTIONS= $(B)/tests/asan_rings && echo "asan: 1 passed, 0 failed"

check-tsan:
	@sh tests/torture/tsan.sh

# Takes minutes: every system call of the recorder fails in turn.
check-holders:
	@$(PYTHON) tests/hostile/run.py --build $(B) --runs $${RUNS:-200}

check-inject: parts
	@$(PYTHON) tests/inject/run.py --build $(B)

# Suites that others wrote, with and without cuwhy (docs/develop/wild.md). Nothing of them is in the repository.
check-wild: parts
	@test -n "$(WILD)" || { echo "make check-wild WILD=FOLDER: the folder with the sources of the suites; it may be empty, then you are told what to fetch" >&2; exit 2; }
	@$(PYTHON) tests/wild/run.py --build $(B) --python $(PYTHON) --wild $(WILD) $(WILD_OPTIONS)

# That test itself, on a suite of our own.
check-wild-own: parts
	@$(PYTHON) tests/wild/check.py $(B)

# An hour by default. What it finds, it prints with the command that repeats it.
soak: parts
	@$(MAKE) --no-print-directory SAN=address,undefined parts
	@$(PYTHON) tests/soak/run.py --build $(B) --seconds $${SECONDS:-3600} --seed $${SEED:-0}

# Planted defects are found.
check-soak: parts
	@$(PYTHON) tests/soak/run.py --build $(B) --self-test

check-kills: parts
	@$(PYTHON) tests/soak/kills.py --build $(B) --kills $${KILLS:-10000} --seed $${SEED:-0}

check-all: check check-san

check-gpu: parts
	@$(PYTHON) tests/gpu/run.py --build $(B)
	@$(PYTHON) tests/gpu/faults.py --build $(B)
	@$(PYTHON) tests/gpu/late.py --build $(B) --measure
	@$(PYTHON) tests/gpu/driver_words.py --build $(B) --python $(PYTHON)
	@$(PYTHON) tests/gpu/triton_asserts.py --build $(B) --python $(PYTHON)
	@$(PYTHON) tests/gpu/thread_ranks.py --build $(B) --python $(PYTHON) --times 3
	@$(PYTHON) tests/gpu/figures.py --build $(B)
	@$(PYTHON) tests/gpu/snapshots.py --build $(B)
	@$(PYTHON) tests/gpu/memory_live.py --build $(B)
	@$(PYTHON) tests/gpu/doctor.py --build $(B) --python $(PYTHON)
	@sh tests/gpu/neighbors.sh $(B) $(PYTHON)

# Never part of `check`: it needs the network. Downloads are kept in build/wheels.
check-wheels:
	@$(PYTHON) tests/wheels/check.py --cache build/wheels $(WHEELS)

# Real PyTorch on the simulated GPU. Downloads 1.2 GB, once.
# All of them, also after one failed; words behind a comma are options.
TORCH_PARTS = torch/allocator.py torch/check.py torch/memory.py,--sample torch/memory_snapshots.py,--sample torch/fit.py torch/one_number.py torch/modules.py,--quick torch/remedies.py,--sample torch/writes.py \
	gpu/guard.py,--gpu,sim:h200
check-torch: parts $(B)/tests/allocator_replay
	@failed=; for part in $(TORCH_PARTS); do \
		$(PYTHON) tests/$$(echo $$part | tr , ' ') --build $(B) || failed="$$failed $${part%%,*}"; \
	done; [ -z "$$failed" ] || { echo "check-torch: failed:$$failed"; exit 1; }

# Programs by others that leak, or settle late. Ten minutes.
check-growing: parts
	@$(PYTHON) tests/torch/growing.py --build $(B) --steps 60 tests/torch/growing_strangers

# The largest size that fits: 30 programs by others, and generated ones whose batches differ. Half an hour.
check-sizes: parts
	@$(PYTHON) tests/torch/sizes.py --build $(B); sizes=$$?; $(PYTHON) tests/torch/varying.py --build $(B) && exit $$sizes

# What makes programs fit, each change made by hand and each diff applied. Ten minutes.
check-remedies: parts
	@$(PYTHON) tests/torch/remedies.py --build $(B)

# Changes of source code that FIX advises, made in copies and run. Ten minutes.
check-fixes: parts
	@$(PYTHON) tests/torch/fixes.py --build $(B) --generated 11

# Fresh seeds: programs that no rule was written for.
check-memory: parts
	@$(PYTHON) tests/torch/memory.py --build $(B) --seed $(or $(SEED),$(shell date +%s)) --count $(or $(COUNT),30)

# Likewise: what PyTorch's libraries import from NVIDIA's, against the stand-ins.
check-standins: parts
	@$(PYTHON) tests/wheels/check_standins.py --build $(B) --cache build/wheels $(WHEELS)

# Real packages in environments of their own, under build/stacks.
check-stacks: parts
	@$(PYTHON) tests/stacks/run.py --build $(B) $(STACK)

check-standin-exports: parts
	@$(PYTHON) tests/wheels/standin_exports.py --build $(B) --cache build/wheels

# Likewise: the architectures in wheels against kb/compat_torch.def.
check-wheel-archs: $(B)/tests/show_archs
	@$(PYTHON) tests/wheels/check_archs.py --build $(B) --scratch build/wheels $(WHEELS)

# Likewise: real wheels, checked by the doctor.
check-doctor-wheels: parts
	@$(PYTHON) tests/wheels/check_doctor.py --build $(B) --scratch build/wheels $(WHEELS)

# What PyTorch's allocator did, given to ours (tests/torch/allocator.py).
$(B)/tests/allocator_replay: tests/torch/allocator_replay.c $(LIB_OBJ)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(SANFLAG) -o $@ $^ $(LDLIBS)

$(B)/tests/show_archs: tests/wheels/show_archs.c $(LIB_OBJ)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(SANFLAG) -o $@ $^ $(LDLIBS)

bench: parts
	@sh tests/bench/run.sh $(B)

# PYTHON must have PyTorch; no GPU is needed
bench-replay: $(B)/tests/bench_replay
	@$<

$(B)/tests/bench_replay: tests/bench/bench_replay.c $(LIB_OBJ)
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_C) $(SANFLAG) -Itests/unit -o $@ $^ $(LDLIBS) -lpthread

bench-snapshot: parts
	@$(PYTHON) tests/bench/bench_snapshot.py --build $(B)

bench-text: parts
	@$(PYTHON) tests/bench/bench_text.py --build $(B) --megabytes $${MEGABYTES:-2048}

bench-gpu: parts
	@$(PYTHON) tests/bench/bench_gpu.py --build $(B)

compare-gpu: parts
	@$(PYTHON) tests/gpu/compare.py --build $(B)

fuzz: deps
	@sh tests/fuzz/fuzz.sh $${SECONDS:-600} $${WHAT:-trace}

# Without PyTorch the stand-ins for NVIDIA's libraries are not needed, a fifth of all that is compiled.
demo: export CUWHY_WRITES_MODE :=
demo: deps
	@goal=$$(PYTHON=$(PYTHON) sh examples/demo.sh --needs) && \
		$(MAKE) --no-print-directory $(JOBS) $$goal TOTAL=$$($(MAKE) --no-print-directory -n $$goal 2>/dev/null | grep -c '^sh tools/progress.sh')
	@sh tools/progress.sh end
	@PYTHON=$(PYTHON) sh examples/demo.sh $(B)

install: all
	@$(MAKE) --no-print-directory install-files
.PHONY: install-files
install-files:
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/cuwhy/sim $(DESTDIR)$(PREFIX)/lib/cuwhy/fit $(DESTDIR)$(PREFIX)/lib/cuwhy/lib32
	install -m 755 $(B)/cuwhy $(DESTDIR)$(PREFIX)/bin/cuwhy
	install -m 755 $(B)/cuwhy-probe $(DESTDIR)$(PREFIX)/lib/cuwhy/
	install -m 644 $(B)/libcuwhy-rec.so $(B)/libcuwhy-writes.so $(DESTDIR)$(PREFIX)/lib/cuwhy/
	install -m 644 $(FIT_PARTS) $(DESTDIR)$(PREFIX)/lib/cuwhy/fit/
	install -m 644 $(SIM_PARTS) $(DESTDIR)$(PREFIX)/lib/cuwhy/sim/
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 $(B)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(B)/completions/cuwhy.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/cuwhy
	install -m 644 $(B)/completions/_cuwhy $(DESTDIR)$(PREFIX)/share/zsh/site-functions/
	install -m 644 $(B)/completions/cuwhy.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/
	if [ -f $(B)/lib32/libcuwhy-rec.so ]; then \
		install -m 644 $(B)/lib32/libcuwhy-rec.so $(DESTDIR)$(PREFIX)/lib/cuwhy/lib32/; fi
	rm -rf $(DESTDIR)$(PREFIX)/lib/cuwhy/preload
	cp -dR $(B)/preload $(DESTDIR)$(PREFIX)/lib/cuwhy/

# Takes away what install-files put there.
.PHONY: uninstall
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/cuwhy $(DESTDIR)$(PREFIX)/share/man/man1/cuwhy.1 $(DESTDIR)$(PREFIX)/share/man/man1/cuwhy-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/cuwhy $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_cuwhy \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/cuwhy.fish
	rm -rf $(DESTDIR)$(PREFIX)/lib/cuwhy

clean:
	rm -rf build build-san

-include $(shell find $(B)/obj $(B)/host -name '*.d' 2>/dev/null)
