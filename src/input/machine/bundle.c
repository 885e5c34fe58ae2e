/* SPDX-License-Identifier: Apache-2.0
 * A machine as one JSON object and back: the bundle (see machine.h; docs/doctor.md describes it).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "compat/compat.h"
#include "input/machine/bundle_priv.h"
#include "input/machine/code_json.h"
#include "input/machine/machine.h"
#include "base/banned.h"

#define MARK		"cuwhy_bundle"
#define BUNDLE_MAX	(64u << 20)

/* --- there ------------------------------------------------------------------------------------ */

static void set_text(json_t *o, const char *key, const char *text)
{
	char *copy;

	if (!text)
		return;
	copy = xstrdup(text);
	str_make_utf8(copy);
	json_object_set_new(o, key, json_string(copy));
	free(copy);
}

static json_t *variables_json(const struct variables *v)
{
	json_t *o = json_object();

	for (size_t i = 0; i < v->n_set; i++)
		set_text(o, v->set[i].name, v->set[i].value);
	return o;
}

static json_t *code_json(const struct machine *m)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < m->n_code; i++) {
		const struct machine_code *c = &m->code[i];

		o = json_pack("{s:I}", "env", (json_int_t)c->env);
		set_text(o, "path", c->path);
		set_text(o, "package", c->package);
		set_text(o, "version", c->version);
		set_text(o, "reason", c->reason);
		if (c->torch)
			json_object_set_new(o, "torch", json_true());
		if (c->fatbin)
			json_object_set_new(o, "sets", code_sets_to_json(c->fatbin));
		if (c->fatbin && c->fatbin->damaged)
			set_text(o, "damaged", c->fatbin->why);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *ptxas_json(const struct machine *m)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < m->n_ptxas; i++) {
		o = json_pack("{s:I, s:i}", "env", (json_int_t)m->ptxas[i].env, "cuda", m->ptxas[i].cuda);
		set_text(o, "path", m->ptxas[i].path);
		json_array_append_new(list, o);
	}
	return list;
}

json_t *machine_to_json(const struct machine *m)
{
	json_t *o = json_pack("{s:i}", MARK, BUNDLE_VERSION);

	set_text(o, "made_by", m->made_by);
	json_object_set_new(o, "host", host_to_json(&m->host));
	if (m->variables.known)
		json_object_set_new(o, "variables", variables_json(&m->variables));
	if (m->nvml)
		json_object_set_new(o, "nvml", fields_write(&bundle_nvml, m->nvml));
	if (m->cuda_asked)
		json_object_set_new(o, "cuda", fields_write(&bundle_cuda, &m->cuda));
	json_object_set_new(o, "python", fields_write(&bundle_envs, &m->envs));
	json_object_set_new(o, "code", code_json(m));
	json_object_set_new(o, "ptxas", ptxas_json(m));
	if (m->pid)
		json_object_set_new(o, "process", fields_write(&bundle_process, &m->process));
	return o;
}

/* --- and back --------------------------------------------------------------------------------- */

static int check_top(const json_t *o, struct err *e)
{
	static const char *const keys[] = {MARK, "made_by", "host", "variables", "nvml", "cuda", "python", "code", "ptxas",
					   "process", "note", NULL};
	const json_t *version = json_object_get(o, MARK);
	const char *key;
	json_t *v;

	if (!json_is_object(o) || !json_is_integer(version))
		return err_set(e, -EINVAL, "it is no bundle of cuwhy: \"" MARK "\" is missing");
	if (json_integer_value(version) != BUNDLE_VERSION)
		return err_set(e, -EINVAL, "the bundle is of version %lld, and this cuwhy reads version %d",
			       (long long)json_integer_value(version), BUNDLE_VERSION);
	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key) != 0)
			i++;
		if (!keys[i])
			return err_set(e, -EINVAL, "'%.60s' in the bundle is no part that cuwhy knows", key);
	}
	return 0;
}

/* The variables are judged anew: what is wrong with them may be known better by now. */
static int read_variables(struct machine *m, const json_t *o, struct err *e)
{
	const char **env, *key;
	size_t n = 0;
	json_t *v;

	if (!o) {
		variables_judge(&m->variables, &m->pool, NULL);
		return 0;
	}
	if (!json_is_object(o))
		return err_set(e, -EINVAL, "'variables' in the bundle should be an object");
	env = pool_alloc(&m->pool, (json_object_size(o) + 1) * sizeof(*env));
	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		if (!json_is_string(v))
			return err_set(e, -EINVAL, "'variables.%.60s' in the bundle should be a text", key);
		env[n++] = pool_printf(&m->pool, "%s=%s", key, json_string_value(v));
	}
	variables_judge(&m->variables, &m->pool, env);
	return 0;
}

static const char *text_of(struct machine *m, const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? pool_strdup(&m->pool, s) : NULL;
}

/* PTX without a version is of the toolkit that the environment's torch was built with. */
static int usual_ptx(const struct machine *m, size_t env)
{
	const char *cuda = env < m->envs.n_envs ? m->envs.env[env].torch.cuda : NULL;
	int major = 0, minor = 0;

	if (!cuda || sscanf(cuda, "%d.%d", &major, &minor) != 2 || major < 0 || major > 99 || minor < 0 || minor > 99)
		return 0;
	return compat_ptx_of_cuda(major * 1000 + minor * 10);
}

static int read_code_entry(struct machine *m, const json_t *o, struct machine_code *c, struct err *e)
{
	const json_t *sets = json_object_get(o, "sets");
	const char *archs = json_string_value(json_object_get(o, "archs")), *damaged;
	struct fatbin *f;

	if (!json_is_object(o) || (sets && !json_is_array(sets)))
		return err_set(e, -EINVAL, "an entry of 'code' in the bundle should be an object with \"sets\" or \"archs\"");
	c->env = (size_t)json_integer_value(json_object_get(o, "env"));
	if (c->env >= m->envs.n_envs)
		return err_set(e, -EINVAL, "an entry of 'code' in the bundle names an environment that it has not");
	c->path = text_of(m, o, "path");
	c->package = text_of(m, o, "package");
	c->version = text_of(m, o, "version");
	c->reason = text_of(m, o, "reason");
	c->torch = json_is_true(json_object_get(o, "torch"));
	if (!c->path)
		c->path = c->torch ? "libtorch_cuda.so" : c->package ? c->package : "a library";
	if (!sets && !archs)
		return 0;
	f = code_from_json(&m->pool, sets, archs, usual_ptx(m, c->env), e);
	if (!f)
		return -EINVAL;
	damaged = json_string_value(json_object_get(o, "damaged"));
	f->damaged = damaged != NULL;
	str_copy(f->why, sizeof(f->why), damaged ? damaged : "");
	c->fatbin = f;
	return 0;
}

static int read_code(struct machine *m, const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);

	if (list && (!json_is_array(list) || n > 4096))
		return err_set(e, -EINVAL, "'code' in the bundle should be a list");
	m->code = pool_alloc(&m->pool, (n + 1) * sizeof(*m->code));
	for (size_t i = 0; i < n; i++)
		if (read_code_entry(m, json_array_get(list, i), &m->code[m->n_code++], e))
			return -EINVAL;
	return 0;
}

static int read_ptxas(struct machine *m, const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);

	if (list && (!json_is_array(list) || n > 4096))
		return err_set(e, -EINVAL, "'ptxas' in the bundle should be a list");
	m->ptxas = pool_alloc(&m->pool, (n + 1) * sizeof(*m->ptxas));
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);
		json_int_t env = json_integer_value(json_object_get(o, "env")), cuda = json_integer_value(json_object_get(o, "cuda"));

		if (env < 0 || (size_t)env >= m->envs.n_envs || cuda < 0 || cuda > 100000)
			return err_set(e, -EINVAL, "an entry of 'ptxas' in the bundle should have \"env\" and \"cuda\" (12080 is 12.8)");
		m->ptxas[m->n_ptxas++] = (struct machine_ptxas){(size_t)env, text_of(m, o, "path"), (int)cuda};
	}
	return 0;
}

/* `part` NULL: the key is missing. */
static int read_part(struct machine *m, const json_t *o, const char *key, const struct fields *f, void *it, struct err *e)
{
	const json_t *part = json_object_get(o, key);

	if (part && !json_is_null(part))
		return fields_read(f, part, it, key, &m->pool, e);
	fields_init(f, it);
	return 0;
}

int machine_from_json(struct machine *m, const json_t *o, struct err *e)
{
	const json_t *host = json_object_get(o, "host"), *nvml = json_object_get(o, "nvml");

	*m = (struct machine){.bundle = true};
	cuda_answer_init(&m->cuda);
	host_unknown(&m->host);
	if (check_top(o, e))
		return -EINVAL;
	m->made_by = text_of(m, o, "made_by");
	if (host && !host_from_json(&m->host, &m->pool, host))
		return err_set(e, -EINVAL, "'host' in the bundle should be an object");
	m->bus_known = json_is_array(json_object_get(host, "gpu")) && host_told(&m->host, "the PCI bus");
	m->nodes_known = json_is_array(json_object_get(host, "node")) && host_told(&m->host, "/dev");
	if (read_variables(m, json_object_get(o, "variables"), e))
		return -EINVAL;
	if (nvml && !json_is_null(nvml)) {
		m->nvml = pool_alloc(&m->pool, sizeof(*m->nvml));
		if (fields_read(&bundle_nvml, nvml, m->nvml, "nvml", &m->pool, e))
			return -EINVAL;
	}
	m->cuda_asked = json_is_object(json_object_get(o, "cuda"));
	m->pid = json_is_object(json_object_get(o, "process"));
	if (read_part(m, o, "cuda", &bundle_cuda, &m->cuda, e) || read_part(m, o, "python", &bundle_envs, &m->envs, e) ||
	    read_part(m, o, "process", &bundle_process, &m->process, e))
		return -EINVAL;
	return read_code(m, json_object_get(o, "code"), e) || read_ptxas(m, json_object_get(o, "ptxas"), e) ? -EINVAL : 0;
}

int machine_load(struct machine *m, const char *path, struct err *e)
{
	json_error_t where;
	struct buf b;
	json_t *o;
	int rc;

	*m = (struct machine){.bundle = true};
	buf_init(&b, BUNDLE_MAX);
	rc = fs_read(path, &b, e);
	o = rc == 0 ? json_loadb(b.data ? b.data : "", b.len, JSON_REJECT_DUPLICATES, &where) : NULL;
	buf_release(&b);
	if (rc)
		return rc;
	if (!o) {
		err_set(e, -EINVAL, "'%s' is no bundle of cuwhy: line %d: %.100s", path, where.line, where.text);
		return err_hint(e, "'cuwhy doctor --bundle FILE' makes one");
	}
	rc = machine_from_json(m, o, e);
	json_decref(o);
	return rc;
}
