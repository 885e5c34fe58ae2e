/* SPDX-License-Identifier: Apache-2.0
 * Which code runs on which GPU: machine code, PTX, and targets for a single GPU or family.
 */
#include "compat/compat.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static const struct ptx {
	int version, cuda;
} versions[] = {
#define COMPAT_PTX(version, cuda) {version, cuda},
#include "kb/compat_drivers.def"
};

int compat_ptx_of_cuda(int cuda)
{
	int best = 0;

	/* beyond the table the newest version is not known */
	if (cuda <= 0 || cuda / 10 > versions[COUNT(versions) - 1].cuda / 10)
		return 0;
	for (size_t i = 0; i < COUNT(versions); i++)
		if (versions[i].cuda <= cuda)
			best = versions[i].version;
	return best;
}

int compat_cuda_of_ptx(int ptx)
{
	if (ptx <= 0)
		return 0;
	for (size_t i = 0; i < COUNT(versions); i++)
		if (versions[i].version >= ptx)
			return versions[i].cuda;
	return 0;
}

static bool is_tegra(int cc)
{
	const struct compat_capability *c = compat_capability(cc);

	return c && c->tegra;
}

/* CUDA 12.8 and 12.9 called Thor 10.1; since then it is 11.0, and it still runs that code. */
static int renamed(int arch)
{
	return arch == 101 ? 110 : arch;
}

enum compat_code compat_sass_runs(struct compat_target t, int cc)
{
	int arch = renamed(t.arch);

	cc = renamed(cc);
	if (arch <= 0 || cc <= 0)
		return COMPAT_CODE_UNKNOWN;
	if (arch == cc)
		return COMPAT_CODE_RUNS;
	if (t.suffix == 'a')
		return COMPAT_CODE_SPECIFIC;
	if (arch / 10 != cc / 10 || arch > cc)
		return t.suffix == 'f' ? COMPAT_CODE_SPECIFIC : COMPAT_CODE_OTHER_MAJOR;
	return is_tegra(arch) || is_tegra(cc) ? COMPAT_CODE_TEGRA : COMPAT_CODE_RUNS;
}

enum compat_code compat_ptx_runs(struct compat_target t, int ptx, int cc, int driver_cuda)
{
	int arch = renamed(t.arch);
	int needed;

	cc = renamed(cc);
	if (arch <= 0 || cc <= 0)
		return COMPAT_CODE_UNKNOWN;
	if (t.suffix == 'a' && arch != cc)
		return COMPAT_CODE_SPECIFIC;
	if (t.suffix == 'f' && (arch / 10 != cc / 10 || arch > cc))
		return COMPAT_CODE_SPECIFIC;
	if (arch > cc)
		return COMPAT_CODE_TOO_NEW;
	/* Can the driver read this version of PTX? Even where the table does not say so, a new enough driver may. */
	needed = compat_cuda_of_ptx(ptx);
	if (ptx <= 0 || driver_cuda <= 0)
		return COMPAT_CODE_UNKNOWN;
	if (needed)
		return driver_cuda >= needed ? COMPAT_CODE_RUNS : COMPAT_CODE_PTX_VERSION;
	/* newer than the table: drivers that are in it cannot read it */
	return driver_cuda <= versions[COUNT(versions) - 1].cuda ? COMPAT_CODE_PTX_VERSION : COMPAT_CODE_UNKNOWN;
}
