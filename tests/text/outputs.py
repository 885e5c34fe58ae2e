# SPDX-License-Identifier: Apache-2.0
"""What the usual tools print about a machine, in their layout: drawn from a few machines that exist in kb/compat_*.def."""
import random

# PyTorch, its CUDA, its Python packages
BUILDS = [("2.4.1", "12.1", "cu121"), ("2.6.0", "12.4", "cu124"), ("2.8.0", "12.8", "cu128"), ("2.11.0", "13.0", "cu130")]
# driver, the newest CUDA that it supports
DRIVERS = [("550.54.15", "12.4"), ("560.35.03", "12.6"), ("570.86.15", "12.8"), ("580.65.06", "13.0")]
# name, short name, MiB, capability
GPUS = [("NVIDIA A100-SXM4-80GB", 81920, "8.0"), ("NVIDIA H100 80GB HBM3", 81559, "9.0"), ("NVIDIA GeForce RTX 4090", 24564, "8.9"),
        ("NVIDIA RTX A6000", 49140, "8.6"), ("Tesla T4", 15360, "7.5")]
NVCC = ["11.8", "12.1", "12.4", "12.8", "13.0"]


class Machine:
    """A healthy one: its driver runs its PyTorch."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.torch, self.cuda, self.variant = r.choice(BUILDS)
        fit = [d for d in DRIVERS if int(d[1].split(".")[0]) >= int(self.cuda.split(".")[0])]
        self.driver, self.driver_cuda = r.choice(fit)
        self.gpu, self.memory, self.capability = r.choice(GPUS)
        self.gpus = r.choice([1, 2, 4, 8])
        self.nvcc = r.choice(NVCC)
        self.used = r.choice([4, 431, 3072])
        self.python = r.choice(["3.10.12", "3.11.9", "3.12.3"])
        self.uuid = "%08x-%04x-%04x-%04x-%012x" % tuple(r.getrandbits(n) for n in (32, 16, 16, 16, 48))


def collect_env(m, available=True, driver=None, gpus=None):
    lines = ["Collecting environment information...", "PyTorch version: %s+%s" % (m.torch, m.variant), "Is debug build: False",
             "CUDA used to build PyTorch: " + m.cuda, "ROCM used to build PyTorch: N/A", "",
             "OS: Ubuntu 22.04.4 LTS (x86_64)", "GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "Clang version: Could not collect",
             "CMake version: version 3.31.2", "Libc version: glibc-2.35", "",
             "Python version: %s (main, Apr  6 2024, 17:59:24) [GCC 11.4.0] (64-bit runtime)" % m.python,
             "Python platform: Linux-6.5.0-35-generic-x86_64-with-glibc2.35", "Is CUDA available: %s" % available,
             "CUDA runtime version: %s.131" % m.nvcc, "CUDA_MODULE_LOADING set to: %s" % ("LAZY" if available else "N/A"),
             "GPU models and configuration: "]
    count = m.gpus if gpus is None else gpus
    lines += ["GPU %d: %s" % (i, m.gpu) for i in range(count)] + [""] if count else [lines.pop() + "No CUDA"]
    lines += ["Nvidia driver version: %s" % (m.driver if driver is None else driver),
              "cuDNN version: Probably one of the following:", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0",
              "/usr/lib/x86_64-linux-gnu/libcudnn_ops.so.9.1.0", "HIP runtime version: N/A", "MIOpen runtime version: N/A",
              "Is XNNPACK available: True", "", "CPU:", "Architecture:                       x86_64",
              "CPU op-mode(s):                     32-bit, 64-bit", "Address sizes:                      46 bits physical, 57 bits virtual",
              "CPU(s):                             96", "Vulnerability Spec store bypass:    Mitigation; Speculative Store Bypass disabled",
              "", "Versions of relevant libraries:", "[pip3] numpy==1.26.4", "[pip3] nvidia-cublas-cu12==12.4.5.8",
              "[pip3] nvidia-cudnn-cu12==9.1.0.70", "[pip3] nvidia-nccl-cu12==2.21.5", "[pip3] torch==%s" % m.torch, "[pip3] triton==3.2.0",
              "[conda] Could not collect"]
    return "\n".join(lines) + "\n"


def nvidia_smi(m):
    rule = "+-----------------------------------------+------------------------+----------------------+"
    lines = ["Mon Jun  2 10:14:51 2025       ", "+-----------------------------------------------------------------------------------------+",
             "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-9s|" % (m.driver, m.driver, m.driver_cuda), rule,
             "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
             "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
             "|                                         |                        |               MIG M. |",
             "|=========================================+========================+======================|"]
    for i in range(m.gpus):
        lines += ["|   %d  %-26s On  |   00000000:%02X:00.0 Off |                    0 |" % (i, m.gpu[:26], 7 + 8 * i),
                  "| N/A   34C    P0             62W /  400W |  %6dMiB / %6dMiB |      0%%      Default |" % (m.used, m.memory),
                  "|                                         |                        |             Disabled |", rule]
    lines += ["                                                                                         ",
              "+-----------------------------------------------------------------------------------------+",
              "| Processes:                                                                              |",
              "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |",
              "|        ID   ID                                                               Usage      |",
              "|=========================================================================================|",
              "|  No running processes found                                                             |",
              "+-----------------------------------------------------------------------------------------+"]
    return "\n".join(lines) + "\n"


def nvidia_smi_q(m):
    lines = ["", "==============NVSMI LOG==============", "", "Timestamp                                 : Mon Jun  2 10:14:55 2025",
             "Driver Version                            : " + m.driver, "CUDA Version                              : " + m.driver_cuda, "",
             "Attached GPUs                             : %d" % m.gpus]
    for i in range(m.gpus):
        lines += ["GPU 00000000:%02X:00.0" % (7 + 8 * i), "    Product Name                          : " + m.gpu,
                  "    Product Architecture                  : Ampere", "    Persistence Mode                      : Enabled",
                  "    MIG Mode", "        Current                           : Disabled", "        Pending                           : Disabled",
                  "    GPU UUID                              : GPU-" + m.uuid, "    GPU Fabric", "        State                             : N/A",
                  "    FB Memory Usage", "        Total                             : %d MiB" % m.memory, "        Reserved                          : 636 MiB",
                  "        Used                              : %d MiB" % m.used, "        Free                              : %d MiB" % (m.memory - m.used - 636),
                  "    Compute Mode                          : Default", "    ECC Mode", "        Current                           : Enabled",
                  "        Pending                           : Enabled", "    ECC Errors", "        Volatile", "            SRAM Correctable              : 0",
                  "            SRAM Uncorrectable Parity     : 0", "            DRAM Correctable              : 0", "            DRAM Uncorrectable            : 0",
                  "    Retired Pages", "        Single Bit ECC                    : N/A", "        Pending Page Blacklist            : N/A",
                  "    Remapped Rows", "        Correctable Error                 : 0", "        Uncorrectable Error               : 0",
                  "        Pending                           : No", "        Remapping Failure Occurred        : No",
                  "    Clocks Event Reasons", "        HW Slowdown                       : Not Active", "        HW Thermal Slowdown               : Not Active",
                  "    Processes                             : None", ""]
    return "\n".join(lines) + "\n"


def pip_list(m):
    rows = [("Package", "Version"), ("------------------------", "-----------"), ("accelerate", "1.2.1"), ("certifi", "2024.8.30"), ("filelock", "3.16.1"),
            ("numpy", "1.26.4"), ("nvidia-cublas-cu12", "12.4.5.8"), ("nvidia-cuda-runtime-cu12", "12.4.127"), ("nvidia-cudnn-cu12", "9.1.0.70"),
            ("nvidia-nccl-cu12", "2.21.5"), ("pip", "24.3.1"), ("safetensors", "0.4.5"), ("torch", m.torch), ("tqdm", "4.67.1"), ("transformers", "4.47.1"),
            ("triton", "3.2.0"), ("typing_extensions", "4.12.2")]
    return "".join("%-24s %s\n" % row for row in rows)


def nvcc_version(m):
    return ("nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\nBuilt on Thu_Mar_28_02:18:24_PDT_2024\n"
            "Cuda compilation tools, release %s, V%s.131\nBuild cuda_%s.r%s/compiler.34097967_0\n" % (m.nvcc, m.nvcc, m.nvcc, m.nvcc))


def dmesg(m):
    return ("[    0.000000] Linux version 6.5.0-35-generic (buildd@lcy02-amd64-079) (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0)\n"
            "[    1.871203] pci 0000:07:00.0: [10de:20b2] type 00 class 0x030200\n"
            "[    9.412345] nvidia: loading out-of-tree module taints kernel.\n"
            "[    9.501222] nvidia-nvlink: Nvlink Core is being initialized, major device number 511\n"
            "[    9.733100] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  %s  Wed Jan 22 20:04:51 UTC 2025\n"
            "[    9.988812] nvidia-modeset: Loading NVIDIA UNIX Open Kernel Mode Setting Driver for x86_64  %s  Wed Jan 22 19:41:03 UTC 2025\n"
            "[   10.120011] [drm] Initialized nvidia-drm 0.0.0 20160202 for 0000:07:00.0 on minor 1\n"
            "[   14.551234] nvidia_uvm: module uses symbols nvUvmInterfaceDisableAccessCntr from proprietary module nvidia, inheriting taint.\n"
            "[   31.220131] audit: type=1400 audit(1717322091.123:61): apparmor=\"STATUS\" operation=\"profile_load\" name=\"docker-default\"\n"
            "[  402.871120] perf: interrupt took too long (2512 > 2500), lowering kernel.perf_event_max_sample_rate to 79500\n"
            % (m.driver, m.driver))


ALL = {"collect_env.txt": collect_env, "nvidia-smi.txt": nvidia_smi, "nvidia-smi-q.txt": nvidia_smi_q, "pip-list.txt": pip_list,
       "nvcc.txt": nvcc_version, "dmesg.txt": dmesg}
