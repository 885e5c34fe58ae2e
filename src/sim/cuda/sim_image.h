/* SPDX-License-Identifier: Apache-2.0
 * Module images: which of the code in one fits the GPU. Private to the files that read images. */
#ifndef CUWHY_SIM_IMAGE_H
#define CUWHY_SIM_IMAGE_H

#include "sim/cuda/sim.h"

/* What a driver would choose: binary code first, else PTX that it can compile. */
struct sim_choice {
	int sass;		/* best matching binary, 0 = none */
	bool sass_special;	/* it is made for just this GPU or its family */
	int ptx;		/* best matching PTX target */
	int ptx_version;	/* of it */
	int ptx_too_new;	/* ISA version of PTX that would match if it were not too new */
};

/* Both return true when this code (86, suffix 'a', 'f' or none) is better than what was offered before. */
bool sim_choice_sass(struct sim_choice *c, const struct sim_model *m, int arch, char suffix);
bool sim_choice_ptx(struct sim_choice *c, const struct sim_model *m, int arch, char suffix, int version);
int sim_choice_code(const struct sim_choice *c);	/* 0, or why none of it can run */

/* sim_real.c: images of real code. */
bool sim_real_is(const void *image);
int sim_real_load(struct sim_module *mod, const struct sim_model *m, const void *image, bool kept);
/* The function with this name, made when it is first asked for. NULL with *code: why not. */
struct sim_func *sim_real_find(struct sim_module *mod, const char *name, int *code);
int sim_real_find_all(struct sim_module *mod);		/* makes a function of every kernel */
int sim_real_count(struct sim_module *mod, unsigned int *count);
/* A variable in the memory of a device. */
int sim_real_variable(struct sim_module *mod, int device, const char *name, bool managed, sim_addr *address,
		      size_t *bytes);
void sim_real_free(struct sim_module *mod);

#endif
