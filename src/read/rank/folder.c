/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes a job folder (see folder.h).
 */
#include "read/rank/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/str.h"
#include "read/rank/identity.h"

#define TRIES	   3		/* a file that was replaced while it was read is read again */
#define FOLDERS_MAX 4096	/* jobs in a folder, attempts of a job */

static bool is_job_name(const char *name)
{
	return str_starts(name, "job-") && name[4];
}

static bool attempt_of_name(const char *name, uint32_t *requeue, uint32_t *attempt)
{
	unsigned int a, b;
	int n = 0;

	*requeue = 0;
	if (sscanf(name, "attempt-%9u.%9u%n", &a, &b, &n) == 2 && !name[n]) {
		*requeue = a;
		*attempt = b;
		return true;
	}
	if (sscanf(name, "attempt-%9u%n", &a, &n) != 1 || name[n])
		return false;
	*attempt = a;
	return true;
}

static bool is_rank_name(const char *name)
{
	return (str_starts(name, "rank-") || str_starts(name, "process-")) && str_ends(name, ".json") &&
	       !str_ends(name, ".verdict.json");
}

/* "rank-3.node1.4711.json": 3 */
static uint32_t rank_of_name(const char *name)
{
	unsigned int rank;

	return sscanf(name, "rank-%9u.", &rank) == 1 ? rank : JOB_UNKNOWN;
}

void job_rank_name(char *to, size_t size, const struct job_rank *r)
{
	char node[80];

	job_file_name(node, sizeof(node), r->node ? r->node : "node");
	if (r->rank == JOB_UNKNOWN)
		snprintf(to, size, "process-%s.%u.json", node, r->pid);
	else
		snprintf(to, size, "rank-%u.%s.%u.json", r->rank, node, r->pid);
}

struct names {
	char **list;
	size_t n, room;
};

static void names_free(struct names *l)
{
	while (l->n)
		free(l->list[--l->n]);
	free(l->list);
	*l = (struct names){0};
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* At most `max`, sorted; true: there were more. */
static bool names_in(struct names *l, int folder, bool (*wanted)(const char *name), size_t max)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool more = false;

	if (!d && fd >= 0)
		close(fd);
	while (d && !more && (e = readdir(d))) {
		if (!wanted(e->d_name))
			continue;
		more = l->n == max;
		if (more)
			break;
		l->list = xgrow(l->list, l->n, &l->room, sizeof(*l->list));
		l->list[l->n++] = xstrdup(e->d_name);
	}
	if (d)
		closedir(d);
	xsort(l->list, l->n, sizeof(*l->list), by_version);
	return more;
}

static bool is_attempt_name(const char *name)
{
	uint32_t a, b;

	return attempt_of_name(name, &a, &b);
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A regular file of at most JOB_FILE_MAX bytes, whose owner is that of the folder or root. -EPERM: it is not. */
static int open_file(int folder, const char *name, uid_t owner, size_t *size)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_uid != owner && st.st_uid != 0)) {
		close(fd);
		return -EPERM;
	}
	if (st.st_size < 2 || st.st_size > (off_t)JOB_FILE_MAX) {
		close(fd);
		return -EINVAL;
	}
	*size = (size_t)st.st_size;
	return fd;
}

/* -ESTALE and a read that ends early: another machine has just replaced it. */
static int read_json(int folder, const char *name, uid_t owner, json_t **o)
{
	size_t size = 0, at = 0;
	int fd = open_file(folder, name, owner, &size), rc = 0;
	char *text;

	if (fd < 0)
		return fd;
	text = xmalloc(size);
	while (at < size && rc == 0) {
		ssize_t n = read(fd, text + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			rc = n < 0 ? -errno : -EIO;
		else
			at += (size_t)n;
	}
	close(fd);
	*o = rc == 0 ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
	free(text);
	return rc == 0 && !*o ? -EINVAL : rc;
}

static int read_once(int folder, const char *name, uid_t owner, struct job_rank *r, struct pool *pool)
{
	json_t *o = NULL;
	int rc = read_json(folder, name, owner, &o);

	if (rc == 0 && !job_rank_read(r, o, pool))
		rc = -EINVAL;
	json_decref(o);
	return rc;
}

static bool worth_another_try(int rc)
{
	return rc == -ESTALE || rc == -EIO || rc == -ENOENT || rc == -EINVAL;
}

static int read_rank(int folder, const char *name, uid_t owner, struct job_rank *r, struct pool *pool)
{
	int rc = -EINVAL;

	for (int i = 0; i < TRIES; i++) {
		rc = read_once(folder, name, owner, r, pool);
		if (!worth_another_try(rc))
			break;
	}
	r->path = pool_strdup(pool, name);
	return rc;
}

static int by_rank(const void *a, const void *b)
{
	const struct job_rank *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (strcmp(x->boot, y->boot) != 0)
		return strcmp(x->boot, y->boot);
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void job_attempt_sort(struct job_attempt *a)
{
	xsort(a->rank, a->n, sizeof(*a->rank), by_rank);
	xsort(a->unread, a->n_unread, sizeof(*a->unread), by_number);
}

void job_attempt_add(struct job_attempt *a, const struct job_rank *r)
{
	/* grows by doubling: the number in use says how much room there is */
	if ((a->n & (a->n - 1)) == 0)
		a->rank = xrealloc(a->rank, a->n ? a->n * 2 : 1, sizeof(*a->rank));
	a->rank[a->n++] = *r;
}

void job_attempt_add_unread(struct job_attempt *a, uint32_t rank)
{
	if (rank == JOB_UNKNOWN)
		return;
	if ((a->n_unread & (a->n_unread - 1)) == 0)
		a->unread = xrealloc(a->unread, a->n_unread ? a->n_unread * 2 : 1, sizeof(*a->unread));
	a->unread[a->n_unread++] = rank;
}

static uint64_t real_start(const struct job_rank *r)
{
	uint64_t since = r->written_ns > r->started_ns ? r->written_ns - r->started_ns : 0;

	return r->real_ns > since ? r->real_ns - since : 0;
}

/* Was the file of `a` written by an earlier run that had no name of its own? By their one clock, or by hours that no two clocks
 * differ. */
static bool is_older(const struct job_rank *a, const struct job_rank *b)
{
	if (!strcmp(a->boot, b->boot))
		return a->started_ns < b->started_ns;
	return real_start(a) < real_start(b);
}

static bool has_ended_badly(const struct job_rank *r)
{
	return r->cause || r->exception || r->signal || (r->exit_known && r->exit > 0);
}

/* Two programs that share a job id, not two runs of one: neither had ended when the other one began. */
static bool ran_together(const struct job_rank *a, const struct job_rank *b)
{
	if (!strcmp(a->boot, b->boot))
		return a->started_ns < b->written_ns && b->started_ns < a->written_ns;
	return real_start(a) < b->real_ns && real_start(b) < a->real_ns;
}

/* One process per rank; a process that only started it gives way. */
static void keep_newest(struct job_attempt *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct job_rank *last = kept ? &a->rank[kept - 1] : NULL;

		if (!last || a->rank[i].rank == JOB_UNKNOWN || last->rank != a->rank[i].rank) {
			a->rank[kept++] = a->rank[i];
			continue;
		}
		if (ran_together(last, &a->rank[i]) && last->ppid != a->rank[i].pid && last->pid != a->rank[i].ppid) {
			a->n_twice++;
			if (!has_ended_badly(last) && has_ended_badly(&a->rank[i]))
				*last = a->rank[i];
			continue;
		}
		a->n_older++;
		if (is_older(last, &a->rank[i]))
			*last = a->rank[i];
	}
	a->n = kept;
}

static void read_attempt(struct job_attempt *a, int folder, struct pool *pool)
{
	struct names names = {0};
	struct stat st;
	struct job_rank r;

	if (fstat(folder, &st) != 0)
		return;
	a->too_many = names_in(&names, folder, is_rank_name, JOB_FILES_MAX);
	for (size_t i = 0; i < names.n; i++) {
		int rc = read_rank(folder, names.list[i], st.st_uid, &r, pool);

		if (rc == -EPERM)
			a->n_foreign++;
		else if (rc != 0)
			a->n_damaged++;
		if (rc != 0) {
			job_attempt_add_unread(a, rank_of_name(names.list[i]));
			continue;
		}
		if (r.real_ns > a->newest_real_ns)
			a->newest_real_ns = r.real_ns;
		job_attempt_add(a, &r);
	}
	names_free(&names);
	job_attempt_sort(a);
	keep_newest(a);
}

static int by_attempt(const void *a, const void *b)
{
	const struct job_attempt *x = a, *y = b;

	if (x->requeue != y->requeue)
		return x->requeue < y->requeue ? -1 : 1;
	return x->attempt < y->attempt ? -1 : x->attempt > y->attempt;
}

/* `below`, `name`: folders on the way to it; NULL = none. */
static void add_attempt(struct job *j, int folder, const char *below, const char *name)
{
	struct job_attempt a = {0};

	a.path[0] = below || name ? pool_strdup(&j->pool, below ? below : name) : NULL;
	a.path[1] = below && name ? pool_strdup(&j->pool, name) : NULL;
	if (name)
		attempt_of_name(name, &a.requeue, &a.attempt);
	read_attempt(&a, folder, &j->pool);
	if (!a.n && !a.n_damaged && !a.n_foreign)
		return;
	if (!name && a.n) {
		a.requeue = a.rank[0].requeue;
		a.attempt = a.rank[0].attempt;
	}
	j->attempt = xrealloc(j->attempt, j->n_attempts + 1, sizeof(*j->attempt));
	j->attempt[j->n_attempts++] = a;
}

static void read_job(struct job *j, int folder, const char *below)
{
	struct names names = {0};

	names_in(&names, folder, is_attempt_name, FOLDERS_MAX);
	for (size_t i = 0; i < names.n; i++) {
		int fd = open_folder(folder, names.list[i]);

		if (fd < 0)
			continue;
		add_attempt(j, fd, below, names.list[i]);
		close(fd);
	}
	names_free(&names);
	xsort(j->attempt, j->n_attempts, sizeof(*j->attempt), by_attempt);
}

/* When an attempt of the job was written to last, by the file system. */
static int64_t last_written(int folder)
{
	struct names names = {0};
	struct stat st;
	int64_t newest = fstat(folder, &st) == 0 ? st.st_mtime : 0;

	names_in(&names, folder, is_attempt_name, FOLDERS_MAX);
	for (size_t i = 0; i < names.n; i++)
		if (fstatat(folder, names.list[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime > newest)
			newest = st.st_mtime;
	names_free(&names);
	return newest;
}

struct dated {
	size_t index;
	int64_t at;
};

static int by_date(const void *a, const void *b)
{
	const struct dated *x = a, *y = b;

	if (x->at != y->at)
		return x->at > y->at ? -1 : 1;
	return x->index > y->index ? -1 : x->index < y->index;
}

/* The newest first. Returns how many can be opened. */
static size_t order_by_date(struct dated *list, const struct names *names, int folder)
{
	size_t n = 0;

	for (size_t i = 0; i < names->n; i++) {
		int fd = open_folder(folder, names->list[i]);

		if (fd < 0)
			continue;
		list[n++] = (struct dated){i, last_written(fd)};
		close(fd);
	}
	xsort(list, n, sizeof(*list), by_date);
	return n;
}

static void free_attempts(struct job *j)
{
	for (size_t i = 0; i < j->n_attempts; i++) {
		free(j->attempt[i].rank);
		free(j->attempt[i].unread);
	}
	free(j->attempt);
	j->attempt = NULL;
	j->n_attempts = 0;
}

static bool read_job_named(struct job *j, int folder, const char *name)
{
	int fd = open_folder(folder, name);

	free_attempts(j);
	if (fd < 0)
		return false;
	j->id = pool_strdup(&j->pool, name + strlen("job-"));
	read_job(j, fd, name);
	close(fd);
	for (size_t i = 0; i < j->n_attempts; i++)
		if (j->attempt[i].n)
			return true;
	return false;
}

/* One without a single file that can be read, such as a folder that another user put there, does not hide an older one that has some. */
static void read_newest_job(struct job *j, int folder)
{
	struct names names = {0};
	struct dated *list;
	size_t n, which = 0;

	names_in(&names, folder, is_job_name, FOLDERS_MAX);
	list = xcalloc(names.n + 1, sizeof(*list));
	n = order_by_date(list, &names, folder);
	while (which < n && !read_job_named(j, folder, names.list[list[which].index]))
		which++;
	if (which == n && n) {	/* none: what is wrong with the newest */
		which = 0;
		read_job_named(j, folder, names.list[list[0].index]);
	}
	j->other = pool_alloc(&j->pool, (n + 1) * sizeof(*j->other));
	for (size_t i = 0; i < n; i++)
		if (i != which)
			j->other[j->n_others++] = pool_strdup(&j->pool, names.list[list[i].index] + strlen("job-"));
	free(list);
	names_free(&names);
}

enum level { LEVEL_NONE, LEVEL_DIR, LEVEL_JOB, LEVEL_ATTEMPT };

static bool has_any(int folder, bool (*wanted)(const char *))
{
	struct names names = {0};
	bool any;

	names_in(&names, folder, wanted, 1);
	any = names.n > 0;
	names_free(&names);
	return any;
}

static bool has_job(int folder)
{
	struct names names = {0};
	bool any = false;

	names_in(&names, folder, is_job_name, FOLDERS_MAX);
	for (size_t i = 0; i < names.n && !any; i++) {
		int fd = open_folder(folder, names.list[i]);

		any = fd >= 0 && has_any(fd, is_attempt_name);
		if (fd >= 0)
			close(fd);
	}
	names_free(&names);
	return any;
}

static bool has_attempt(int folder)
{
	struct names names = {0};
	bool any = false;

	names_in(&names, folder, is_attempt_name, FOLDERS_MAX);
	for (size_t i = 0; i < names.n && !any; i++) {
		int fd = open_folder(folder, names.list[i]);

		any = fd >= 0 && has_any(fd, is_rank_name);
		if (fd >= 0)
			close(fd);
	}
	names_free(&names);
	return any;
}

/* A folder of logs may have files named rank-3.json: one of them must be ours. */
static bool has_rank(int folder)
{
	struct names names = {0};
	struct pool pool = {0};
	struct job_rank r;
	struct stat st;
	bool any = false;

	names_in(&names, folder, is_rank_name, JOB_FILES_MAX);
	for (size_t i = 0; i < names.n && !any && fstat(folder, &st) == 0; i++)
		any = read_rank(folder, names.list[i], st.st_uid, &r, &pool) == 0;
	names_free(&names);
	pool_release(&pool);
	return any;
}

static enum level level_of(int folder)
{
	if (has_job(folder))
		return LEVEL_DIR;
	if (has_attempt(folder))
		return LEVEL_JOB;
	return has_rank(folder) ? LEVEL_ATTEMPT : LEVEL_NONE;
}

bool job_folder_is(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is = fd >= 0 && level_of(fd) != LEVEL_NONE;

	if (fd >= 0)
		close(fd);
	return is;
}

static const char *id_of_ranks(const struct job *j)
{
	for (size_t i = 0; i < j->n_attempts; i++)
		for (size_t k = 0; k < j->attempt[i].n; k++)
			if (j->attempt[i].rank[k].job)
				return j->attempt[i].rank[k].job;
	return j->id ? j->id : JOB_UNNAMED;
}

struct job *job_folder_read(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct job *j;

	if (fd < 0) {
		err_set(e, -errno, "cannot open '%s': %s", path, strerror(errno));
		return NULL;
	}
	j = xcalloc(1, sizeof(*j));
	j->root = pool_strdup(&j->pool, path);
	switch (level_of(fd)) {
	case LEVEL_DIR:
		read_newest_job(j, fd);
		break;
	case LEVEL_JOB:
		read_job(j, fd, NULL);
		break;
	case LEVEL_ATTEMPT:
		add_attempt(j, fd, NULL, NULL);
		break;
	case LEVEL_NONE:
		break;
	}
	close(fd);
	j->id = id_of_ranks(j);
	if (j->n_attempts)
		return j;
	err_set(e, -ENOENT, "'%s' has no files of a job", path);
	job_free(j);
	return NULL;
}

static int open_attempt(const struct job *j, const struct job_attempt *a)
{
	int fd = j->root ? open(j->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	for (size_t i = 0; i < 2 && a->path[i] && fd >= 0; i++) {
		int next = open_folder(fd, a->path[i]);

		close(fd);
		fd = next;
	}
	return fd;
}

json_t *job_verdict_read(const struct job *j, const struct job_attempt *a, const struct job_rank *r)
{
	struct stat st;
	json_t *o = NULL;
	int fd;

	if (!r->verdict || strchr(r->verdict, '/') || !str_ends(r->verdict, ".verdict.json"))
		return NULL;
	fd = open_attempt(j, a);
	if (fd < 0)
		return NULL;
	for (int i = 0; i < TRIES && fstat(fd, &st) == 0; i++)
		if (!worth_another_try(read_json(fd, r->verdict, st.st_uid, &o)))
			break;
	close(fd);
	if (o && json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	free_attempts(j);
	pool_release(&j->pool);
	free(j);
}

static int make_folder(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
		return -errno;
	fd = open_folder(at, name);
	return fd < 0 ? -errno : fd;
}

/* A file that we make in it must be its owner's: a server may give our files another user than ours, but the same one as our
 * folders. */
static int check_owner(int folder)
{
	char name[64];
	struct stat of_folder, of_file;
	int fd, rc = 0;

	if (fstat(folder, &of_folder) != 0)
		return -errno;
	if (of_folder.st_mode & 022)
		return -EPERM;
	if (of_folder.st_uid == geteuid())
		return 0;
	snprintf(name, sizeof(name), ".owner-%d", (int)getpid());
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &of_file) != 0 || of_file.st_uid != of_folder.st_uid)
		rc = -EPERM;
	close(fd);
	unlinkat(folder, name, 0);
	return rc;
}

static int open_below(int dir, const struct job_rank *r)
{
	char name[80] = "job-", attempt[48];
	int job, fd;

	job_file_name(name + 4, sizeof(name) - 4, r->job ? r->job : JOB_UNNAMED);
	if (r->requeue)
		snprintf(attempt, sizeof(attempt), "attempt-%u.%u", r->requeue, r->attempt);
	else
		snprintf(attempt, sizeof(attempt), "attempt-%u", r->attempt);
	job = make_folder(dir, name);
	if (job < 0)
		return job;
	fd = check_owner(job);
	if (fd == 0)
		fd = make_folder(job, attempt);
	close(job);
	return fd;
}

int job_folder_open(const char *dir, const struct job_rank *r, struct err *e)
{
	int top, fd, rc;

	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot create the job folder '%s': %s", dir, strerror(errno));
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_set(e, -errno, "cannot open the job folder '%s': %s", dir, strerror(errno));
	fd = open_below(top, r);
	close(top);
	rc = fd < 0 ? fd : check_owner(fd);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	if (rc == -EPERM || rc == -ELOOP || rc == -ENOTDIR)
		return err_set(e, -EPERM,
			       "the job folder '%s' has a folder for this job that another user made, or can write to",
			       dir);
	return err_set(e, rc, "cannot write to the job folder '%s': %s", dir, strerror(-rc));
}

static int write_all(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t did = write(fd, text, n);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return did < 0 ? -errno : -EIO;
		text += did;
		n -= (size_t)did;
	}
	return 0;
}

int job_file_write(int folder, const char *name, const char *text, size_t n)
{
	char beside[320];
	int fd, rc;

	snprintf(beside, sizeof(beside), ".%.280s.%d", name, (int)getpid());
	fd = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST && unlinkat(folder, beside, 0) == 0)	/* of a run with our pid that was killed */
		fd = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, text, n);
	if (rc == 0 && fsync(fd) != 0)
		rc = -errno;
	if (close(fd) != 0 && rc == 0)	/* where a network file system reports a full disk */
		rc = -errno;
	if (rc == 0 && renameat(folder, beside, folder, name) != 0)
		rc = -errno;
	if (rc != 0)
		unlinkat(folder, beside, 0);
	return rc;
}
