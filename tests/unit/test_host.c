/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine from its files: on captured trees that the tests make, healthy, broken and hostile ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "read/machine/host.h"
#include "tree_make.h"

#define DEVICES	"/sys/bus/pci/devices/"
#define DRIVER	"580.65.06"

static struct pool pool;
static struct host h;

static int begin(void **state)
{
	(void)state;
	tree_begin();
	return 0;
}

static int end(void **state)
{
	(void)state;
	tree_end();
	pool_release(&pool);
	return 0;
}

/* The first library with this name (and of this kind, if it is not NULL); NULL: none. */
static const struct host_library *library(const struct host *of, const char *name, const char *kind)
{
	for (ptrdiff_t i = 0; i < of->n_library; i++)
		if (strcmp(of->library[i].name, name) == 0 && (!kind || strcmp(of->library[i].kind, kind) == 0))
			return &of->library[i];
	return NULL;
}

static void look_with(const char *const *env)
{
	struct host_from from = {.root = tree_root, .env = env};

	host_collect(&h, &pool, &from);
}

static void look(void)
{
	static const char *const none[] = {NULL};

	look_with(none);
}

#define LOOK(...)	look_with((const char *const[]){__VA_ARGS__, NULL})

/* A device of the bus below a bridge, as sysfs shows it. */
static void pci_device(const char *bridge, const char *address, const char *vendor, const char *class, const char *driver)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/%s/vendor", bridge, address);
	tree_file(path, vendor);
	snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/%s/class", bridge, address);
	tree_file(path, class);
	snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/%s/device", bridge, address);
	tree_file(path, "0x2335\n");
	if (driver) {
		snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/%s/driver", bridge, address);
		snprintf(target, sizeof(target), "../../../../bus/pci/drivers/%s", driver);
		tree_link(path, target);
	}
	snprintf(path, sizeof(path), DEVICES "%s", address);
	snprintf(target, sizeof(target), "../../../devices/pci0000:00/%s/%s", bridge, address);
	tree_link(path, target);
}

static void pci_config(const char *bridge, const char *address, const void *bytes, size_t len)
{
	char path[256];

	if (address)
		snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/%s/config", bridge, address);
	else
		snprintf(path, sizeof(path), "/sys/devices/pci0000:00/%s/config", bridge);
	tree_bytes(path, bytes, len);
}

/* A bridge with access control for PCIe peers switched on or off. */
static void pci_bridge(const char *address, unsigned char control)
{
	unsigned char c[512] = {0x86, 0x80, 0x01, 0x20};
	char path[128], target[128];

	c[0x100] = 0x01;	/* error reporting, then the list continues at 0x148 */
	c[0x102] = 0x81;
	c[0x103] = 0x14;
	c[0x148] = 0x0d;	/* access control */
	c[0x14a] = 0x01;
	c[0x14e] = control;
	pci_config(address, NULL, c, sizeof(c));
	snprintf(path, sizeof(path), DEVICES "%s", address);
	snprintf(target, sizeof(target), "../../../devices/pci0000:00/%s", address);
	tree_link(path, target);
}

static void good_driver(void)
{
	tree_file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " DRIVER
						 "  Release Build  (dvs-builder@x)  Sun Jul 20 2025\n"
						 "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n");
	tree_file("/proc/modules", "nvidia_uvm 1 0 - Live 0x0 (O)\nnvidia 2 1 nvidia_uvm, Live 0x0 (O)\n");
	tree_file("/proc/driver/nvidia/gpus/0000:10:00.0/information",
		  "Model: \t\t NVIDIA H200\nIRQ:   \t\t 35\nGPU UUID: \t GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7\nVideo BIOS: \t 96\n"
		  "Device Minor: \t 0\nGPU Firmware: \t " DRIVER "\nGPU Excluded:\t No\n");
	tree_file("/proc/devices", "Character devices:\n195 nvidia\n508 nvidia-uvm\n509 nvidia-caps\n");
	tree_file("/dev/nvidia0", "195:0\n");
	tree_file("/dev/nvidiactl", "195:255\n");
	tree_file("/dev/nvidia-uvm", "508:0\n");
	tree_bytes("/usr/lib/x86_64-linux-gnu/libcuda.so." DRIVER, "\177ELF\002rest", 9);
	tree_link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so." DRIVER);
	tree_bytes("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so." DRIVER, "\177ELF\002rest", 9);
	tree_link("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so." DRIVER);
	pci_device("0000:00:01.0", "0000:10:00.0", "0x10de\n", "0x030200\n", "nvidia");
}

static void healthy__everything_is_found(void **state)
{
	(void)state;
	good_driver();
	look();
	assert_string_equal(h.kernel.version, DRIVER);
	assert_string_equal(h.kernel.flavour, "open");
	assert_int_equal(h.kernel.nvidia, 1);
	assert_int_equal(h.kernel.uvm, 1);
	assert_int_equal(h.kernel.nouveau, 0);
	assert_int_equal(h.kernel.uvm_major, 508);
	assert_int_equal(h.n_gpu, 1);
	assert_string_equal(h.gpu[0].address, "0000:10:00.0");
	assert_int_equal(h.gpu[0].class, 0x0302);
	assert_int_equal(h.gpu[0].device, 0x2335);
	assert_string_equal(h.gpu[0].driver, "nvidia");
	assert_string_equal(h.gpu[0].path, "0000:00:01.0");
	assert_string_equal(h.gpu[0].model, "NVIDIA H200");
	assert_string_equal(h.gpu[0].uuid, "GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7");
	assert_int_equal(h.gpu[0].minor, 0);
	assert_int_equal(h.gpu[0].excluded, 0);
	assert_int_equal(host_node(&h, "/dev/nvidia0")->error, 0);
	assert_int_equal(host_node(&h, "/dev/nvidia-uvm")->major, 508);
	assert_string_equal(library(&h, "libcuda.so.1", "system")->version, DRIVER);
	assert_int_equal(library(&h, "libcuda.so.1", NULL)->bits, 64);
	assert_string_equal(library(&h, "libnvidia-ml.so.1", NULL)->version, DRIVER);
	assert_null(library(&h, "libcuda.so.1", "compat"));
	assert_int_equal(h.fabric.switches, 0);
}

static void proprietary__and_module_without_proc(void **state)
{
	(void)state;
	tree_file("/proc/driver/nvidia/version",
		  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n");
	look();
	assert_string_equal(h.kernel.version, "535.54.03");
	assert_string_equal(h.kernel.flavour, "proprietary");
	unlink(tree_place("/proc/driver/nvidia/version"));
	tree_file("/sys/module/nvidia/version", "550.54.14\n");
	look();
	assert_string_equal(h.kernel.version, "550.54.14");
	assert_null(h.kernel.flavour);
	assert_int_equal(h.kernel.nvidia, 1);
}

static void pci__gpus_without_a_driver_are_seen(void **state)
{
	static const unsigned char gone[64] = {0xff, 0xff, 0xff, 0xff}, there[64] = {0xde, 0x10, 0x35, 0x23};

	(void)state;
	pci_device("0000:00:01.0", "0000:01:00.0", "0x10de\n", "0x030000\n", "nouveau");
	pci_device("0000:00:02.0", "0000:02:00.0", "0x10de\n", "0x030200\n", "vfio-pci");
	pci_device("0000:00:03.0", "0000:03:00.0", "0x10de\n", "0x030200\n", NULL);
	pci_device("0000:00:03.0", "0000:03:00.1", "0x10de\n", "0x040300\n", "snd_hda_intel");	/* its sound */
	pci_device("0000:00:04.0", "0000:04:00.0", "0x8086\n", "0x030000\n", "i915");
	pci_device("0000:00:05.0", "0000:05:00.0", "0x10de\n", "0x068000\n", "nvidia-nvswitch");
	pci_config("0000:00:01.0", "0000:01:00.0", gone, sizeof(gone));
	pci_config("0000:00:02.0", "0000:02:00.0", there, sizeof(there));
	tree_file("/proc/modules", "nouveau 2834432 1 - Live 0x0\n");
	look();
	assert_int_equal(h.n_gpu, 3);
	assert_string_equal(h.gpu[0].driver, "nouveau");
	assert_int_equal(h.gpu[0].answers, 0);
	assert_string_equal(h.gpu[1].driver, "vfio-pci");
	assert_int_equal(h.gpu[1].answers, 1);
	assert_string_equal(h.gpu[2].driver, "");
	assert_int_equal(h.gpu[2].answers, -1);
	assert_int_equal(h.fabric.switches, 1);
	assert_int_equal(h.kernel.nouveau, 1);
	assert_int_equal(h.kernel.nvidia, 0);
	assert_null(h.kernel.version);
}

static void pci__access_control_in_the_bridges_above(void **state)
{
	(void)state;
	pci_device("0000:00:01.0", "0000:01:00.0", "0x10de\n", "0x030200\n", "nvidia");
	pci_device("0000:00:02.0", "0000:02:00.0", "0x10de\n", "0x030200\n", "nvidia");
	pci_bridge("0000:00:01.0", 0x1d);
	look();
	assert_int_equal(h.iommu.acs_bridges, -1);	/* the second bridge cannot be read */
	assert_int_equal(h.gpu[0].acs, 0x1c);
	assert_int_equal(h.gpu[1].acs, -1);
	pci_bridge("0000:00:02.0", 0x01);	/* checks the source of requests, redirects none */
	look();
	assert_int_equal(h.iommu.acs_bridges, 1);
	assert_string_equal(h.iommu.acs_first, "0000:00:01.0");
	assert_int_equal(h.gpu[1].acs, 0);
}

static void kernel__module_for_another_kernel_only(void **state)
{
	(void)state;
	tree_file("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
	tree_file("/lib/modules/6.8.0-60-generic/modules.dep", "kernel/drivers/net/e1000.ko.zst:\n");
	tree_file("/lib/modules/6.8.0-50-generic/modules.dep", "updates/dkms/nvidia.ko.zst:\n");
	tree_file("/usr/src/nvidia-" DRIVER "/dkms.conf", "");
	tree_file("/usr/src/nvidia-srv-550.54.14/dkms.conf", "");
	look();
	assert_int_equal(h.kernel.installed, 0);
	assert_int_equal(h.kernel.other_kernel, 1);
	assert_string_equal(h.kernel.file_version, DRIVER);
	tree_file("/lib/modules/6.8.0-60-generic/modules.dep", "updates/dkms/nvidia.ko.zst:\n");
	look();
	assert_int_equal(h.kernel.installed, 1);
}

static void suspend__settings_and_evidence(void **state)
{
	(void)state;
	tree_file("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nPreserveVideoMemoryAllocations: 0\n");
	tree_file("/sys/power/suspend_stats/success", "3\n");
	tree_file("/dev/kmsg", "6,100,1000000,-;PM: suspend entry (deep)\n6,101,2500000,-;PM: suspend exit\n");
	look();
	assert_int_equal(h.kernel.preserve_memory, 0);
	assert_int_equal(h.kernel.suspends, 3);
	assert_int_equal(host_event(&h, "suspend")->count, 1);
	assert_int_equal(host_event(&h, "resume")->seconds, 2);
}

static void nodes__missing_forbidden_and_taken_away(void **state)
{
	(void)state;
	good_driver();
	tree_file("/dev/nvidia0", "195:0 EPERM\n");
	tree_file("/dev/nvidiactl", "195:255 EACCES\n");
	unlink(tree_place("/dev/nvidia-uvm"));
	look();
	assert_int_equal(host_node(&h, "/dev/nvidia0")->error, EPERM);
	assert_int_equal(host_node(&h, "/dev/nvidiactl")->error, EACCES);
	assert_int_equal(host_node(&h, "/dev/nvidia-uvm")->exists, 0);
	assert_int_equal(host_node(&h, "/dev/nvidia-uvm")->error, ENOENT);
	unlink(tree_place("/dev/nvidia0"));
	look();
	assert_int_equal(host_node(&h, "/dev/nvidia0")->exists, 0);	/* the kernel module has this GPU */
	assert_null(host_node(&h, "/dev/nvidia1"));
}

static void nodes__mig_instances_and_their_capabilities(void **state)
{
	(void)state;
	tree_file("/proc/driver/nvidia/capabilities/gpu0/mig/gi7/access",
		  "DeviceFileMinor: 66\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
	tree_file("/proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access", "DeviceFileMinor: 67\n");
	tree_file("/proc/driver/nvidia/capabilities/gpu0/mig/gix/access", "DeviceFileMinor: 68\n");
	tree_file("/proc/driver/nvidia/capabilities/mig/config", "DeviceFileMinor: 1\n");
	tree_file("/dev/nvidia-caps/nvidia-cap66", "509:66\n");
	look();
	assert_int_equal(h.mig.gpu_instances, 1);
	assert_int_equal(h.mig.compute_instances, 1);
	assert_int_equal(h.n_mig_device, 2);
	assert_int_equal(h.mig_device[0].gi, 7);
	assert_int_equal(h.mig_device[0].ci, -1);
	assert_int_equal(h.mig_device[0].error, 0);
	assert_int_equal(h.mig_device[1].minor, 67);
	assert_int_equal(h.mig_device[1].error, ENOENT);
	assert_non_null(host_node(&h, "/dev/nvidia-caps/nvidia-cap66"));
}

static void libraries__older_newer_empty_broken(void **state)
{
	const struct host_library *b;

	(void)state;
	good_driver();
	tree_bytes("/usr/local/cuda-12.8/compat/libcuda.so.570.26", "\177ELF\002x", 6);
	tree_link("/usr/local/cuda-12.8/compat/libcuda.so.1", "libcuda.so.570.26");
	tree_link("/usr/local/cuda", "cuda-12.8");
	tree_file("/opt/zero/libcuda.so.1", "");
	tree_link("/opt/broken/libcuda.so.1", "libcuda.so.999.99");
	tree_link("/opt/loop/libcuda.so.1", "/opt/loop/libcuda.so.1");
	tree_file("/usr/lib/wsl/lib/libcuda.so.1.1", "\177ELF\002x");
	tree_link("/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1.1");
	LOOK("LD_LIBRARY_PATH=/opt/zero::/opt/broken:relative:/opt/loop:/nowhere");
	b = library(&h, "libcuda.so.1", "compat");
	assert_string_equal(b->version, "570.26");
	b = library(&h, "libcuda.so.1", "wsl");
	assert_null(b->version);
	assert_int_equal(h.library[0].bits, 0);
	assert_int_equal(h.library[0].bytes, 0);
	assert_int_equal(h.library[0].in_path, 1);
	assert_string_equal(h.library[1].path, "/opt/broken/libcuda.so.1");
	assert_null(h.library[1].real);
	assert_string_equal(h.library[2].path, "/opt/loop/libcuda.so.1");
	assert_null(h.library[2].real);
	for (ptrdiff_t i = 0, n = 0; i < h.n_library; i++) {	/* /usr/local/cuda is the same file */
		n += h.library[i].version && strcmp(h.library[i].version, "570.26") == 0;
		assert_true(n <= 1);
	}
}

#define OVERLAY "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A\n"

static void container__kinds(void **state)
{
	static const struct { const char *file, *text, *kind; } c[] = {
		{"/.dockerenv", "", "docker"}, {"/run/.containerenv", "engine=\"podman\"", "podman"},
		{"/var/run/secrets/kubernetes.io/serviceaccount/token", "x", "kubernetes"},
		{"/.singularity.d/labels.json", "{}", "apptainer"},
		{"/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"},
		{"/proc/self/cgroup", "0::/lxc.payload.web\n", "lxc"},
		{"/proc/self/cgroup", "0::/kubepods.slice/kubepods-besteffort.slice/cri-containerd-x.scope\n",
		 "kubernetes"},
		{"/proc/self/cgroup", "5:devices:/docker/0123\n", "docker"},
		{"/proc/self/mountinfo", OVERLAY, "docker"},
		{"/proc/self/cgroup", "0::/user.slice/user-1000.slice\n", "none"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		tree_file(c[i].file, c[i].text);
		look();
		if (!h.container.kind || strcmp(h.container.kind, c[i].kind) != 0)
			fail_msg("%s: %s instead of %s", c[i].file, h.container.kind, c[i].kind);
		tree_end();
		tree_begin();
	}
	look();
	assert_null(h.container.kind);		/* nothing could be read */
	tree_file("/.dockerenv", "");		/* an image that was turned into a virtual machine */
	tree_file("/proc/self/mountinfo", "1 0 254:0 / / rw,relatime - ext4 /dev/vda rw\n");
	look();
	assert_string_equal(h.container.kind, "none");
	tree_file("/proc/self/mountinfo", "1 0 253:0 / / rw,relatime - xfs /dev/mapper/rhel-root rw\n");
	tree_file("/proc/self/cgroup", "0::/system.slice/containerd.service\n");
	look();
	assert_string_equal(h.container.kind, "none");
	tree_file("/proc/self/mountinfo", "1 0 253:0 / / rw,relatime - xfs /dev/mapper/docker-253:1-99-abc rw\n");
	look();
	assert_string_equal(h.container.kind, "docker");
}

static void container__who_brought_the_gpus(void **state)
{
	(void)state;
	tree_file("/.dockerenv", "");
	tree_file("/proc/self/mountinfo", OVERLAY);
	look();
	assert_string_equal(h.container.hook, "none");
	assert_int_equal(h.container.driver_mounts, 0);
	tree_file("/proc/self/mountinfo", OVERLAY "2 1 0:51 / /proc/driver/nvidia rw - tmpfs tmpfs rw\n"
			  "3 1 8:1 /usr/bin/nvidia-smi /usr/bin/nvidia-smi ro - ext4 /dev/sda1 rw\n"
			  "4 1 8:1 /usr/lib/libcuda.so." DRIVER " /usr/lib/x86_64-linux-gnu/libcuda.so." DRIVER
			  " ro - ext4 /dev/sda1 rw\n");
	good_driver();
	look();
	assert_string_equal(h.container.hook, "nvidia-container-cli");
	assert_int_equal(h.container.driver_mounts, 2);
	assert_int_equal(library(&h, "libcuda.so.1", NULL)->mounted, 1);
	assert_int_equal(library(&h, "libnvidia-ml.so.1", NULL)->mounted, 0);
	tree_file("/proc/self/mountinfo",
		  OVERLAY "3 1 8:1 /usr/bin/nvidia-smi /usr/bin/nvidia-smi ro - ext4 /dev/sda1 rw\n");
	LOOK("NVIDIA_VISIBLE_DEVICES=void");
	assert_string_equal(h.container.hook, "cdi");
	tree_file("/libs/libcuda.so.1", "\177ELF\002");
	tree_file("/proc/self/mountinfo",
		  OVERLAY "3 1 8:1 /usr/lib/libcuda.so.570.26 /libs/libcuda.so.1 ro - ext4 /dev/sda1 rw\n");
	LOOK("LD_LIBRARY_PATH=/libs");
	assert_string_equal(h.library[0].path, "/libs/libcuda.so.1");
	assert_string_equal(h.library[0].version, "570.26");
}

static void container__rules_of_the_control_group(void **state)
{
	(void)state;
	good_driver();
	tree_file("/proc/self/cgroup", "5:devices:/docker/abc\n4:memory:/docker/abc\n");
	tree_file("/sys/fs/cgroup/devices/docker/abc/devices.list", "c 1:3 rwm\nc 195:* rw\n");
	look();
	assert_int_equal(h.container.cgroup, 1);
	assert_int_equal(h.container.devices_allowed, 1);
	assert_int_equal(h.container.uvm_allowed, 0);
	tree_file("/sys/fs/cgroup/devices/docker/abc/devices.list", "a *:* rwm\n");
	look();
	assert_int_equal(h.container.uvm_allowed, 1);
	tree_file("/proc/self/cgroup", "0::/\n");
	look();
	assert_int_equal(h.container.cgroup, 2);
	assert_int_equal(h.container.devices_allowed, -1);
}

static void container__what_the_host_has_for_them(void **state)
{
	(void)state;
	tree_file("/proc/self/cgroup", "0::/init.scope\n");
	tree_file("/usr/bin/docker", "");
	tree_file("/usr/bin/nvidia-ctk", "");
	tree_file("/etc/docker/daemon.json", "{\"runtimes\": {}}");
	tree_file("/etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n  hostPath: /usr/lib/libcuda.so.550.54.14\n");
	tree_file("/etc/cdi/other.yaml", "kind: vendor.com/net\n");
	look();
	assert_int_equal(h.container.toolkit, 1);
	assert_int_equal(h.container.docker_configured, 0);
	assert_int_equal(h.container.cdi_specs, 1);
	assert_string_equal(h.container.cdi_version, "550.54.14");
	tree_file("/etc/docker/daemon.json", "{\"runtimes\": {\"nvidia\": {}}}");
	look();
	assert_int_equal(h.container.docker_configured, 1);
}

static void wsl__both_generations(void **state)
{
	(void)state;
	tree_file("/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n");
	tree_file("/dev/dxg", "");
	look();
	assert_int_equal(h.wsl.version, 2);
	assert_int_equal(h.wsl.dxg, 1);
	assert_int_equal(h.wsl.libcuda, 0);
	tree_file("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
	look();
	assert_int_equal(h.wsl.version, 1);
	tree_file("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
	look();
	assert_int_equal(h.wsl.version, 0);
}

static void daemons__fabric_manager(void **state)
{
	(void)state;
	tree_file("/proc/self/cgroup", "0::/init.scope\n");
	tree_file("/proc/1/comm", "systemd\n");
	tree_file("/usr/bin/nv-fabricmanager", "x");
	tree_file("/var/lib/dpkg/status", "Package: a\nVersion: 1\n\nPackage: nvidia-fabricmanager-570\nStatus: install ok\nVersion: 570.133.20-1\n\n");
	look();
	assert_int_equal(h.fabric.installed, 1);
	assert_int_equal(h.fabric.running, 0);
	assert_int_equal(h.fabric.enabled, 0);
	assert_string_equal(h.fabric.version, "570.133.20");
	tree_file("/proc/44/comm", "nv-fabricmanage\n");
	tree_link("/etc/systemd/system/multi-user.target.wants/nvidia-fabricmanager.service",
		  "/lib/systemd/system/nvidia-fabricmanager.service");
	tree_file("/var/log/fabricmanager.log", "[a] Fabric Manager version is : 535.1.2 is running\n[b] Fabric Manager version is : " DRIVER " is\n");
	look();
	assert_int_equal(h.fabric.running, 1);
	assert_int_equal(h.fabric.enabled, 1);
	assert_string_equal(h.fabric.version, DRIVER);
	unlink(tree_place("/proc/44/comm"));
	tree_file("/.dockerenv", "");
	look();
	assert_int_equal(h.fabric.running, -1);	/* a container does not see the host's */
}

static void daemons__mps(void **state)
{
	(void)state;
	tree_file("/proc/self/cgroup", "0::/init.scope\n");
	tree_file("/proc/1/comm", "systemd\n");
	look();
	assert_int_equal(h.mps.asked, 0);
	assert_int_equal(h.mps.pipe, 0);
	assert_string_equal(h.mps.pipe_dir, "/tmp/nvidia-mps");
	tree_file("/run/mps/control", "EACCES");
	tree_file("/run/mps/nvidia-cuda-mps-control.pid", "77\n");
	LOOK("CUDA_MPS_PIPE_DIRECTORY=/run/mps");
	assert_int_equal(h.mps.asked, 1);
	assert_int_equal(h.mps.pipe, 1);
	assert_int_equal(h.mps.pipe_access, 0);
	assert_int_equal(h.mps.daemon, 0);	/* no process has its pid */
	tree_file("/run/mps/control", "");
	tree_file("/proc/77/comm", "nvidia-cuda-mps\n");
	tree_bytes("/proc/77/cmdline", "nvidia-cuda-mps-control\0-d", 26);
	LOOK("CUDA_MPS_PIPE_DIRECTORY=/run/mps");
	assert_int_equal(h.mps.daemon, 1);
	assert_int_equal(h.mps.pipe_access, 1);
	assert_int_equal(h.mps.server, 0);
}

static void memory__all_limits(void **state)
{
	(void)state;
	tree_file("/proc/meminfo",
		  "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\nSwapTotal:          0 kB\n");
	tree_file("/proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"
		  "Max address space         unlimited            unlimited            bytes\n"
		  "Max locked memory         65536                unlimited            bytes\nMax open files            1024                 4096 files\n");
	tree_file("/proc/self/mountinfo", "1 0 0:9 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k\n");
	tree_file("/proc/self/cgroup", "0::/a/b\n");
	tree_file("/sys/fs/cgroup/a/b/memory.max", "max\n");
	tree_file("/sys/fs/cgroup/a/memory.max", "1073741824\n");
	tree_file("/sys/fs/cgroup/a/memory.current", "1000\n");
	tree_dir("/dev/shm");
	chmod(tree_place("/dev/shm"), 0755);
	look();
	assert_int_equal(h.memory.total, 16384 * 1024);
	assert_int_equal(h.memory.available, 8192 * 1024);
	assert_int_equal(h.memory.swap_total, 0);
	assert_int_equal(h.memory.swap_free, -1);
	assert_int_equal(h.memory.lock_soft, 65536);
	assert_true(h.memory.lock_hard == HOST_UNLIMITED);
	assert_int_equal(h.memory.files_soft, 1024);
	assert_int_equal(h.memory.cgroup_limit, 1073741824);
	assert_int_equal(h.memory.cgroup_used, 1000);
	tree_file("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");	/* CAP_IPC_LOCK */
	look();
	assert_true(h.memory.lock_soft == HOST_UNLIMITED);
	assert_int_equal(h.memory.shm_size, 64 << 20);
	assert_int_equal(h.memory.shm_writable, 0);
	assert_int_equal(h.memory.shm_mounted, 1);
}

static void tools__toolkits_and_compilers(void **state)
{
	(void)state;
	tree_file("/usr/local/cuda-12.4/version.json", "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"12.4.1\"}}");
	tree_file("/usr/local/cuda-12.4/bin/nvcc", "");
	tree_file("/usr/local/cuda-11.8/include/cuda.h", "x\n#define CUDA_VERSION 11080\n");
	tree_file("/usr/local/cuda-11.8/bin/nvcc", "");
	tree_file("/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n");
	tree_file("/usr/local/cuda-13.9/version.json", "{broken");
	tree_link("/usr/local/cuda", "/usr/local/cuda-12.4");
	tree_link("/usr/bin/g++", "g++-12");
	tree_file("/usr/bin/g++-12", "");
	tree_file("/usr/bin/g++-13", "");
	tree_file("/usr/bin/gcc", "");
	tree_file("/usr/lib/gcc/x86_64-redhat-linux/11/cc1", "");
	LOOK("PATH=/usr/local/cuda/bin:/usr/bin", "CUDA_HOME=/usr/local/cuda-11.8");
	assert_int_equal(h.n_toolkit, 4);
	assert_string_equal(h.tools.nvcc, "/usr/local/cuda/bin/nvcc");
	assert_string_equal(h.tools.nvcc_version, "12.4.1");
	assert_string_equal(h.tools.cuda_home_version, "11.8");
	assert_string_equal(h.tools.gxx, "12");
	assert_string_equal(h.tools.gcc, "11");
	assert_int_equal(h.n_compiler, 2);
	for (ptrdiff_t i = 0; i < h.n_toolkit; i++)
		assert_int_equal(h.toolkit[i].is_default, strcmp(h.toolkit[i].path, "/usr/local/cuda-12.4") == 0);
	assert_string_equal(h.toolkit[1].version, "10.2.89");
	assert_string_equal(h.toolkit[3].version, "13.9");
	assert_string_equal(h.toolkit[3].source, "its name");
	tree_file("/usr/lib/gcc/x86_64-redhat-linux/14/cc1", "");
	LOOK("PATH=/usr/bin");
	assert_null(h.tools.gcc);		/* two of them: there is no telling which one is meant */
	assert_null(h.tools.nvcc);
}

static void look_in(const char *cwd, const char *const *env)
{
	struct host_from from = {.root = tree_root, .env = env, .cwd = cwd};

	host_collect(&h, &pool, &from);
}

/* What shows that extensions are built here. */
static void tools__signs_of_building(void **state)
{
	static const char *const home[] = {"HOME=/h", NULL}, *const xdg[] = {"HOME=/h", "XDG_CACHE_HOME=/x", NULL};
	static const char *const own[] = {"HOME=/h", "TORCH_EXTENSIONS_DIR=/e", NULL};

	(void)state;
	tree_dir("/h/.cache/torch_extensions");
	tree_file("/w/setup.py", "from setuptools import setup\n");
	look_in("/w", home);
	assert_null(h.tools.build_cache);	/* an empty folder says nothing */
	assert_null(h.tools.build_setup);
	tree_dir("/h/.cache/torch_extensions/py312_cu121/fused_adam");
	tree_file("/w/setup.py", "from torch.utils.cpp_extension import CUDAExtension\n");
	look_in("/w", home);
	assert_string_equal(h.tools.build_cache, "/h/.cache/torch_extensions");
	assert_string_equal(h.tools.build_setup, "/w/setup.py");
	look_in(NULL, xdg);
	assert_null(h.tools.build_cache);
	assert_null(h.tools.build_setup);
	tree_dir("/x/torch_extensions/a");
	look_in(NULL, xdg);
	assert_string_equal(h.tools.build_cache, "/x/torch_extensions");
	tree_dir("/e/a");
	look_in("/", own);
	assert_string_equal(h.tools.build_cache, "/e");
}

static void log__xids_and_other_lines(void **state)
{
	char text[16384] = "", *at = text;

	(void)state;
	for (int i = 0; i < 100; i++)
		at += sprintf(at, "4,%d,1000000,-;NVRM: Xid (PCI:0000:10:00): 31, pid=%d, name=python3\n", i, i);
	at += sprintf(at, "4,200,9000000,-;NVRM: Xid (PCI:0000:10:00): 79, GPU has fallen off the bus.\n");
	at += sprintf(at, "4,201,9000000,-;NVRM: API mismatch: the client has the version 580.65.06, but\n");
	sprintf(at, "4,202,9000000,-;NVRM: GPU at PCI:0000:10:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7\nno line end");
	tree_file("/dev/kmsg", text);
	look();
	assert_int_equal(h.log.readable, 1);
	assert_int_equal(h.xids.n, XID_LINES_MAX);
	assert_int_equal(h.xids.line[XID_LINES_MAX - 1].number, 79);	/* the most serious one is kept */
	assert_int_equal(h.xids.n_gpus, 1);
	assert_int_equal(host_event(&h, "api-mismatch")->count, 1);
	assert_int_equal(host_event(&h, "api-mismatch")->seconds, 9);
	assert_non_null(strstr(host_event(&h, "api-mismatch")->text, "580.65.06"));
	assert_int_equal(host_event(&h, "fallen-off-bus")->count, 1);
	assert_null(host_event(&h, "oom-killer"));
}

/* As the driver writes them: one message over several lines, which /dev/kmsg keeps together. */
static void log__messages_of_several_lines(void **state)
{
	static const struct { const char *line, *id, *part; } c[] = {
		{"NVRM: API mismatch: the client has the version 535.183.01, but\\x0aNVRM: this kernel module has the version 535.171.04.  Please\\x0aNVRM: make",
		 "api-mismatch", "but NVRM: this kernel module has the version 535.171.04."},
		{"NVRM: The NVIDIA GPU 0000:af:00.0 (PCI ID: 10de:1db5)\\x0aNVRM: installed in this system is not supported by open\\x0aNVRM: nvidia.ko because",
		 "needs-closed-modules", "10de:1db5"},
		{"NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:0fc6)\\x0aNVRM: installed in this system is not supported by the\\x0aNVRM: NVIDIA 595.58.03",
		 "gpu-not-supported", "by the NVRM: NVIDIA 595.58.03"},
		{"NVRM: GPU 0000:04:00.0: RmInitAdapter failed! (0x63:0x0:1905)", "init-failed", "0x63"},
	};
	char line[512];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		snprintf(line, sizeof(line), "3,55,7000000,-;%s\n", c[i].line);
		tree_file("/dev/kmsg", line);
		look();
		assert_int_equal(h.n_event, 1);
		assert_string_equal(h.event[0].id, c[i].id);
		assert_non_null(strstr(h.event[0].text, c[i].part));
	}
}

static void log__that_cannot_be_read_is_unknown(void **state)
{
	bool said = false;

	(void)state;
	look();
	assert_int_equal(h.log.readable, 0);
	assert_false(h.xids.readable);
	for (ptrdiff_t i = 0; i < h.n_gap; i++)
		said |= strcmp(h.gap[i].what, "the kernel log") == 0 && *h.gap[i].why;
	assert_true(said);
}

static void empty__nothing_is_claimed(void **state)
{
	(void)state;
	look();
	assert_int_equal(h.n_gpu, -1);
	assert_int_equal(h.n_node, -1);
	assert_int_equal(h.n_event, -1);
	assert_int_equal(h.fabric.switches, -1);
	assert_int_equal(h.kernel.nvidia, -1);
	assert_int_equal(h.memory.total, -1);
	assert_int_equal(h.iommu.on, -1);
	assert_int_equal(h.fabric.running, -1);
	assert_null(h.os.name);
	assert_int_equal(h.n_library, -1);
	assert_true(h.n_gap >= 2);
	tree_dir("/sys/bus/pci/devices");
	look();
	assert_int_equal(h.n_gpu, 0);
}

static void hostile__trees_are_survived(void **state)
{
	static const char *const files[] = {
		"/proc/driver/nvidia/version",
		"/proc/modules",
		"/proc/devices",
		"/proc/meminfo",
		"/proc/self/limits",
		"/proc/self/mountinfo",
		"/proc/self/cgroup",
		"/etc/os-release",
		"/proc/driver/nvidia/params",
		"/dev/kmsg",
		"/dev/nvidia0",
		"/etc/docker/daemon.json",
		"/etc/cdi/x.yaml",
		"/usr/local/cuda-1/version.json",
		"/var/lib/dpkg/status",
		"/usr/bin/nv-fabricmanager",
		"/proc/cpuinfo",
		"/sys/devices/pci0000:00/0000:00:01.0/config",
		"/proc/driver/nvidia/gpus/0000:01:00.0/information",
		"/proc/5/comm",
		"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access",
		"/sys/fs/cgroup/devices/devices.list",
		"/proc/sys/kernel/osrelease",
	};
	static const struct { const char *text; size_t len; } content[] = {
		{"\0\0\0\0", 4},
		{"\xff\xff\xff\xff", 4},
		{":::::", 5},
		{"0", 1},
		{"NVRM version:", 13},
		{"\n\n\n", 3},
		{"- - - - - - - -\n", 16},
		{"99999999999999999999999999999999\n", 33},
		{"195:0 E", 7},
		{"{\"cuda\": {\"version\": 5}}", 24},
		{"kind: nvidia.com/ libcuda.so.", 29},
		{"a b c d e f - g h i", 19}, {"1:devices:", 10},
	};

	(void)state;
	pci_device("0000:00:01.0", "0000:01:00.0", "0x10de\n", "0x030200\n", "nvidia");
	for (size_t i = 0; i < sizeof(content) / sizeof(content[0]); i++) {
		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
			tree_bytes(files[k], content[i].text, content[i].len);
		LOOK("PATH=:::", "LD_LIBRARY_PATH=:;:", "CUDA_HOME=", "CUDA_MPS_PIPE_DIRECTORY=x", "CUDA_PATH=relative");
		json_decref(host_to_json(&h));
	}
	assert_int_equal(h.n_gpu, 1);
}

static void hostile__links_out_pipes_and_crowds(void **state)
{
	char path[64];

	(void)state;
	tree_link("/proc/meminfo", "/proc/meminfo");
	tree_link("/etc/os-release", "../../../../../../../../etc/passwd");
	assert_int_equal(mkfifo(tree_place("/dev/kmsg"), 0600), 0);
	assert_int_equal(mkfifo(tree_place("/proc/modules"), 0600), 0);
	tree_link("/usr/bin/gcc", "/usr/bin/gcc");
	for (int i = 0; i < 600; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia%d", i);
		tree_file(path, "");
	}
	look();
	assert_null(h.os.name);
	assert_int_equal(h.memory.total, -1);
	assert_int_equal(h.log.readable, 0);
	assert_int_equal(h.n_node, HOST_LIST_MAX);
}

static void json__there_and_back_is_the_same(void **state)
{
	struct pool other = {0};
	struct host back;
	json_t *a, *b;

	(void)state;
	good_driver();
	tree_file("/dev/kmsg", "4,1,5000000,-;NVRM: Xid (PCI:0000:10:00): 79, GPU has fallen off the bus.\n"
			       "4,2,5000000,-;NVRM: GPU at PCI:0000:10:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7\n");
	tree_file("/proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n");
	tree_file("/etc/os-release", "PRETTY_NAME=\"Ubuntu 24.04 \xff\x01LTS\"\nID=ubuntu\n");
	look();
	assert_string_equal(h.os.name, "Ubuntu 24.04 ??LTS");
	a = host_to_json(&h);
	assert_true(host_from_json(&back, &other, a));
	b = host_to_json(&back);
	assert_true(json_equal(a, b));
	assert_true(back.memory.lock_soft == HOST_UNLIMITED);
	assert_int_equal(back.xids.n, 1);
	assert_true(back.xids.readable);
	assert_string_equal(back.gpu[0].uuid, h.gpu[0].uuid);
	json_decref(a);
	json_decref(b);
	pool_release(&other);
}

static void json__wrong_types_are_unknown(void **state)
{
	static const char text[] = "{\"os\": 5, \"kernel\": {\"version\": 580, \"nvidia\": \"yes\", \"uvm_major\": -7, \"suspends\": 1.5, \"uvm\": true},"
		" \"gpu\": [1, {\"address\": null, \"minor\": \"unlimited\"}, []], \"node\": {}, \"xids\": [5, \"Xid (\", null], \"log\": []}";
	json_t *o = json_loads(text, 0, NULL);
	char *big;

	(void)state;
	assert_true(host_from_json(&h, &pool, o));
	assert_null(h.kernel.version);
	assert_int_equal(h.kernel.nvidia, -1);
	assert_int_equal(h.kernel.uvm, 1);
	assert_int_equal(h.kernel.uvm_major, -1);
	assert_int_equal(h.kernel.suspends, -1);
	assert_int_equal(h.n_gpu, 1);
	assert_null(h.gpu[0].address);
	assert_int_equal(h.n_node, -1);
	assert_int_equal(h.xids.n, 0);
	big = malloc(10001);
	memset(big, 'x', 10000);
	big[10000] = '\0';
	json_object_set_new(json_object_get(o, "kernel"), "version", json_string(big));
	assert_true(host_from_json(&h, &pool, o));
	assert_null(h.kernel.version);
	free(big);
	json_decref(o);
	assert_false(host_from_json(&h, &pool, NULL));
	assert_int_equal(h.kernel.uvm, -1);
}

static void versions__are_compared_by_their_numbers(void **state)
{
	(void)state;
	assert_true(host_version_compare("580.65.06", "580.9") > 0);
	assert_true(host_version_compare("580.65.06", "580.65.6") == 0);
	assert_true(host_version_compare("525", "525.60.13") < 0);
	assert_true(host_version_compare(NULL, "1") < 0);
	assert_true(host_version_compare("1", "x") > 0);
	assert_true(host_version_compare(NULL, NULL) == 0);
}

static void live__this_machine_is_read(void **state)
{
	struct host_from from = {.root = ""};

	(void)state;
	host_collect(&h, &pool, &from);
	assert_non_null(h.os.kernel);
	assert_non_null(h.os.glibc);
	assert_true(h.memory.total > 0);
	assert_non_null(host_node(&h, "/dev/nvidiactl"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(healthy__everything_is_found),
		TEST(proprietary__and_module_without_proc),
		TEST(pci__gpus_without_a_driver_are_seen),
		TEST(pci__access_control_in_the_bridges_above),
		TEST(kernel__module_for_another_kernel_only),
		TEST(suspend__settings_and_evidence),
		TEST(nodes__missing_forbidden_and_taken_away),
		TEST(nodes__mig_instances_and_their_capabilities),
		TEST(libraries__older_newer_empty_broken),
		TEST(container__kinds),
		TEST(container__who_brought_the_gpus),
		TEST(container__rules_of_the_control_group),
		TEST(container__what_the_host_has_for_them),
		TEST(wsl__both_generations),
		TEST(daemons__fabric_manager),
		TEST(daemons__mps),
		TEST(memory__all_limits),
		TEST(tools__toolkits_and_compilers),
		TEST(tools__signs_of_building),
		TEST(log__xids_and_other_lines),
		TEST(log__messages_of_several_lines),
		TEST(log__that_cannot_be_read_is_unknown),
		TEST(empty__nothing_is_claimed),
		TEST(hostile__trees_are_survived),
		TEST(hostile__links_out_pipes_and_crowds),
		TEST(json__there_and_back_is_the_same),
		TEST(json__wrong_types_are_unknown),
		TEST(versions__are_compared_by_their_numbers),
		TEST(live__this_machine_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
