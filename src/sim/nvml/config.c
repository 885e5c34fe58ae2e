/* SPDX-License-Identifier: Apache-2.0
 * Reads CUWHY_SIM_NVML (see README.md).
 */
#include "sim/nvml/sim_nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cuda/sim_cards.h"
#include "sim/cuda/sim_spec.h"
#include "sim/cuda/sim_uuid.h"

struct machine machine;

static bool read_bytes(const char *text, unsigned long long *out)
{
	static const char suffixes[] = "KMGT";
	const char *s;
	char *end;

	if (strcmp(text, "na") == 0) {
		*out = ~0ull;
		return true;
	}
	*out = strtoull(text, &end, 10);
	if (end == text)
		return false;
	s = *end ? strchr(suffixes, *end) : NULL;
	if (s)
		*out <<= 10 * (s - suffixes + 1);
	return *end == '\0' || (s && end[1] == '\0');
}

/* The same as in the simulated driver, so that both describe the same card. */
static bool add_gpu(const char *memory)
{
	const char *sim = getenv("CUWHY_SIM"), *id = sim ? sim : "tiny";
	size_t length = strcspn(id, ",*");
	const struct sim_model *model = sim_model_find(id, length);
	unsigned char uuid[16];
	struct gpu *g;

	if (machine.n_gpus == GPUS_MAX || !model)
		return false;
	g = &machine.gpu[machine.n_gpus];
	sim_uuid_make(uuid, id, length, (int)machine.n_gpus++);
	sim_uuid_print(uuid, g->uuid);
	snprintf(g->name, sizeof(g->name), "%s", model->name);
	g->total = model->memory;
	g->cc = (unsigned int)(model->major * 10 + model->minor);
	return !memory || read_bytes(memory, &g->total);
}

/* PID:BYTES[:KIND[:INSTANCE]] */
static bool add_holder(struct gpu *g, char *text)
{
	char *bytes = strchr(text, ':'), *kind = bytes ? strchr(bytes + 1, ':') : NULL;
	char *instance = kind ? strchr(kind + 1, ':') : NULL;
	struct holder *h = &g->holder[g->n_holders];

	if (!bytes || g->n_holders == HOLDERS_MAX)
		return false;
	*bytes++ = '\0';
	if (kind)
		*kind++ = '\0';
	if (instance)
		*instance++ = '\0';
	*h = (struct holder){.pid = (unsigned int)strtoul(text, NULL, 10), .kind = kind ? *kind : 'c'};
	h->instance = instance ? (unsigned int)strtoul(instance, NULL, 10) : ~0u;
	g->n_holders++;
	return read_bytes(bytes, &h->bytes);
}

/* NAME, or NAME:CODE for a failure */
static bool add_plan(char what, char *text)
{
	struct plan *p = &machine.plan[machine.n_plans];
	char *code = what == 'f' ? strchr(text, ':') : NULL;

	if (machine.n_plans == PLANS_MAX || (what == 'f' && !code))
		return false;
	if (code)
		*code++ = '\0';
	*p = (struct plan){.what = what, .code = code ? atoi(code) : 0};
	snprintf(p->name, sizeof(p->name), "%s", text);
	machine.n_plans++;
	return true;
}

static bool read_gpu_bytes(struct gpu *g, const char *key, char *value)
{
	if (strcmp(key, "reserved") == 0)
		return read_bytes(value, &g->reserved);
	if (strcmp(key, "used") == 0)
		return (g->used_given = read_bytes(value, &g->used));
	if (strcmp(key, "proc") == 0)
		return add_holder(g, value);
	return false;
}

static bool read_gpu_word(const char *key, char *value)
{
	struct gpu *g = machine.n_gpus ? &machine.gpu[machine.n_gpus - 1] : NULL;

	if (!g)
		return false;
	if (strcmp(key, "mig") == 0)
		return g->mig = true;
	if (strcmp(key, "lost") == 0)
		return g->lost = true;
	if (!value)
		return false;
	if (strcmp(key, "mode") == 0 || strcmp(key, "migs") == 0 || strcmp(key, "fabric") == 0)
		*(key[1] == 'o' ? &g->mode : key[0] == 'm' ? &g->migs : &g->fabric) = (unsigned int)strtoul(value, NULL, 10);
	else if (strcmp(key, "busy") == 0)
		g->busy = (unsigned int)strtoul(value, NULL, 10);
	else if (strcmp(key, "ecc") == 0)
		g->ecc = strtoull(value, NULL, 10);
	else if (strcmp(key, "remap") == 0)
		*(value[0] == 'f' ? &g->remap_failed : &g->remap_pending) = true;
	else
		return read_gpu_bytes(g, key, value);
	return true;
}

static bool read_word(char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	if (strcmp(word, "gpu") == 0)
		return add_gpu(value);
	if (strcmp(word, "v1") == 0)
		return machine.no_v2 = true;
	if (value && strcmp(word, "driver") == 0)
		return snprintf(machine.driver, sizeof(machine.driver), "%s", value) > 0;
	if (value && strcmp(word, "cuda") == 0)
		return (machine.cuda = atoi(value)) > 0;
	if (value && strcmp(word, "entry") == 0)
		return (machine.entry = strtoul(value, NULL, 10)) >= 16;
	if (value && (strcmp(word, "hang") == 0 || strcmp(word, "crash") == 0 || strcmp(word, "fail") == 0))
		return add_plan(word[0], value);
	return read_gpu_word(word, value);
}

static void sum_up(struct gpu *g)
{
	for (size_t i = 0; !g->used_given && i < g->n_holders; i++)
		if (g->holder[i].bytes != ~0ull)
			g->used += g->holder[i].bytes;
}

static bool read_text(char *text)
{
	char *rest = NULL, *word = strtok_r(text, ",\n", &rest);

	machine = (struct machine){.entry = 24};
	for (; word; word = strtok_r(NULL, ",\n", &rest)) {
		if (!read_word(word)) {
			fprintf(stderr, "cuwhy: cannot simulate NVML: invalid word '%s' in CUWHY_SIM_NVML\n", word);
			return false;
		}
	}
	for (size_t i = 0; i < machine.n_gpus; i++)
		sum_up(&machine.gpu[i]);
	return true;
}

static void hold(struct gpu *g, unsigned int pid, unsigned long long bytes)
{
	g->used += bytes;
	if (bytes && g->n_holders < HOLDERS_MAX)
		g->holder[g->n_holders++] = (struct holder){.pid = pid, .bytes = bytes, .kind = 'c', .instance = ~0u};
}

/* Under `cuwhy run`: all GPUs, and the processes of the run that use them. */
static bool read_cards(const struct sim_cards *c, unsigned int card, struct gpu *g)
{
	unsigned int rows = atomic_load(&c->rows);

	if (card >= atomic_load(&c->cards))
		return false;
	g->total = atomic_load(&c->total);
	g->used = atomic_load(&c->taken);
	g->n_holders = 0;
	for (unsigned int row = 0; row < rows && row < CARD_ROWS; row++)
		if (sim_cards_alive(c, row))
			hold(g, atomic_load(&c->process[row].pid), atomic_load(&c->used[card][row]));
	return true;
}

/* Else: the GPUs of a program that runs on them, with itself as their only user. */
static bool read_driver(unsigned int card, struct gpu *g)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	bool (*memory)(int, size_t *, size_t *, size_t *) = NULL;
	size_t total, used, peak;

	if (driver)
		*(void **)&memory = dlsym(driver, "cuwhy_sim_memory");
	if (!memory || !memory((int)card, &total, &used, &peak))
		return false;
	g->total = total;
	g->used = 0;
	g->n_holders = 0;
	hold(g, (unsigned int)getpid(), used);
	return true;
}

static bool read_live(unsigned int card, struct gpu *g)
{
	struct sim_cards *c = sim_cards_map();
	bool found;

	found = c ? read_cards(c, card, g) : read_driver(card, g);
	if (c)
		munmap(c, sizeof(*c));
	return found;
}

/* Nobody has started the driver yet: the GPUs of CUWHY_SIM, with nobody on them. NVML needs no driver that is started. */
static void add_idle(void)
{
	static struct sim_config config;
	struct sim_spec_error why;
	const char *spec = getenv("CUWHY_SIM");

	if (!spec || !sim_spec_read(&config, spec, &why) || config.no_device)
		return;
	for (int i = 0; i < config.devices && add_gpu(NULL); i++) {
		struct gpu *g = &machine.gpu[machine.n_gpus - 1];

		g->total = config.memory;
		g->used = config.taken;
	}
}

static bool machine_live(void)
{
	static struct gpu any;

	machine = (struct machine){.entry = 24, .live = true};
	while (read_live((unsigned int)machine.n_gpus, &any) && add_gpu(NULL))
		read_live((unsigned int)machine.n_gpus - 1, &machine.gpu[machine.n_gpus - 1]);
	if (!machine.n_gpus)
		add_idle();
	return machine.n_gpus > 0;
}

void gpu_renew(struct gpu *g)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (!machine.live)
		return;
	pthread_mutex_lock(&lock);
	read_live((unsigned int)(g - machine.gpu), g);
	pthread_mutex_unlock(&lock);
}

bool machine_read(void)
{
	static char text[16384];
	const char *given = getenv("CUWHY_SIM_NVML");
	FILE *f;

	if (!given)
		return machine_live();
	if (given[0] != '@') {
		snprintf(text, sizeof(text), "%s", given);
		return read_text(text);
	}
	f = fopen(given + 1, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return read_text(text);
}
