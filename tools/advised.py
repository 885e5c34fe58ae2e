# SPDX-License-Identifier: Apache-2.0
"""What the commands of kb/causes may consist of: the one list of programs with the options that are advised, and the language that a
command is written in. tools/render_causes.py and tests/commands/check.py use it."""
import ast
import re

HERE = "here"           # runs on any Linux machine: tests/commands/check.py runs it where it is installed
GPU = "gpu"             # needs a GPU, its driver or NVIDIA's toolkit
ELSEWHERE = "elsewhere"  # needs another machine, service, package manager or root: nothing to run in a sandbox

# program: (what it needs, options that may be advised, where they are documented)
PROGRAMS = {
    "apt-get": (ELSEWHERE, "install purge --reinstall", "apt-get(8)"),
    "apptainer": (ELSEWHERE, "exec --nv", "apptainer exec --help"),
    "awk": (HERE, "", "POSIX"),
    "cat": (HERE, "", "POSIX"),
    "chmod": (ELSEWHERE, "", "POSIX"),
    "compute-sanitizer": (GPU, "", "Compute Sanitizer guide: compute-sanitizer PROGRAM"),
    "conda": (ELSEWHERE, "install -c", "conda install --help"),
    "cut": (HERE, "-d* -f1", "POSIX"),
    "cuwhy": (HERE, None, "this repository: the command itself is asked"),
    "df": (HERE, "-h", "df(1)"),
    "dkms": (ELSEWHERE, "autoinstall", "dkms(8)"),
    "dmesg": (ELSEWHERE, "-T", "dmesg(1)"),
    "docker": (ELSEWHERE, "run restart --gpus --device -e -v --memory --ulimit --shm-size --ipc", "docker run reference"),
    "dpkg": (HERE, "-l -S", "dpkg(1)"),
    "echo": (HERE, "", "POSIX"),
    "env": (HERE, "-u", "env(1)"),
    "export": (HERE, "", "POSIX"),
    "find": (HERE, "-name -path", "POSIX"),
    "free": (HERE, "-g -s", "free(1)"),
    "gdb": (HERE, "-batch -ex --args", "gdb(1)"),
    "getent": (HERE, "hosts", "getent(1)"),
    "grep": (HERE, "-i -iE -E -v -rn -A3", "grep(1)"),
    "head": (HERE, "-n", "POSIX"),
    "ibstat": (ELSEWHERE, "", "ibstat(8)"),
    "ip": (HERE, "-br addr", "ip(8)"),
    "kill": (ELSEWHERE, "-CONT", "POSIX"),
    "kubectl": (ELSEWHERE, "delete pod", "kubectl reference"),
    "ldconfig": (HERE, "-p", "ldconfig(8)"),
    "llama-server": (GPU, "--model --gpu-layers --ctx-size", "llama.cpp, tools/server/README.md"),
    "ls": (HERE, "-l -la -d", "POSIX"),
    "lspci": (HERE, "-nn -d", "lspci(8)"),
    "mktemp": (HERE, "-d", "mktemp(1)"),
    "modprobe": (ELSEWHERE, "", "modprobe(8)"),
    "mokutil": (ELSEWHERE, "--import", "mokutil(1)"),
    "mount": (ELSEWHERE, "-o", "mount(8)"),
    "nc": (HERE, "-vz", "nc(1)"),
    "nvcc": (GPU, "-arch -gencode -lineinfo -maxrregcount --version --list-gpu-arch", "CUDA 13 nvcc guide, chapter 4"),
    "nvidia-ctk": (ELSEWHERE, "cdi generate --output runtime configure --runtime", "NVIDIA Container Toolkit, installation and CDI"),
    "nvidia-cuda-mps-control": (GPU, "-d", "MPS guide, chapter 4"),
    "nvidia-modprobe": (GPU, "-u -c", "nvidia-modprobe(1)"),
    "nvidia-smi": (GPU, "-L -q -d -i -c -pl -l -mig --gpu-reset --query-gpu --format mig -cgi -C topo -p2p", "nvidia-smi(1), driver 580"),
    "paste": (HERE, "-sd:", "POSIX"),
    "pip": (ELSEWHERE, "install uninstall -y list check freeze --upgrade --force-reinstall --no-deps --no-cache-dir --no-build-isolation "
            "--no-binary --only-binary --index-url", "pip install --help"),
    "podman": (ELSEWHERE, "run restart --device", "podman-run(1)"),
    "printf": (HERE, "", "POSIX"),
    "python": (HERE, "-c -m -X", "python --help"),
    "reboot": (ELSEWHERE, "", "reboot(8)"),
    "reg": (ELSEWHERE, "add", "Windows commands: reg add"),
    "rm": (ELSEWHERE, "-f -rf", "POSIX"),
    "rmmod": (ELSEWHERE, "", "rmmod(8)"),
    "rocminfo": (ELSEWHERE, "", "ROCm: rocminfo"),
    "sacct": (ELSEWHERE, "--jobs --format", "sacct(1)"),
    "sbatch": (ELSEWHERE, "--mem", "sbatch(1)"),
    "setpci": (ELSEWHERE, "-v -s", "setpci(8)"),
    "sort": (HERE, "-u", "POSIX"),
    "ss": (HERE, "-ltnp", "ss(8)"),
    "sudo": (ELSEWHERE, "", "sudo(8)"),
    "systemctl": (ELSEWHERE, "enable restart status --now", "systemctl(1)"),
    "tail": (HERE, "-n", "POSIX"),
    "tee": (ELSEWHERE, "", "POSIX"),
    "torchrun": (HERE, "--standalone --nnodes --nproc-per-node --rdzv-id --rdzv-backend --rdzv-endpoint", "torchrun --help"),
    "tr": (HERE, "-d", "POSIX"),
    "trtexec": (GPU, "--onnx --saveEngine --hardwareCompatibilityLevel --versionCompatible --memPoolSize", "trtexec --help, TensorRT 10"),
    "ubuntu-drivers": (ELSEWHERE, "install", "ubuntu-drivers(8)"),
    "ulimit": (HERE, "-l", "bash(1)"),
    "uname": (HERE, "-r", "POSIX"),
    "unset": (HERE, "", "POSIX"),
    "update-initramfs": (ELSEWHERE, "-u", "update-initramfs(8)"),
    "usermod": (ELSEWHERE, "-aG", "usermod(8)"),
    "vllm": (GPU, "serve --max-model-len --gpu-memory-utilization", "vllm serve --help"),
    "wc": (HERE, "-l", "POSIX"),
    "which": (HERE, "", "which(1)"),
    "wsl": (ELSEWHERE, "--shutdown --set-version", "wsl --help"),
}

# how a command begins that is neither a shell command nor Python
OTHERS = {
    "cuda": ("__global__ ", "cudaFuncSetAttribute(", "cudaDeviceSetLimit(", "const at::"),
    "yaml": ("resources: ", "volumes: "),
    "json": ('"exec-opts"',),
    "ini": ("[wsl2]",),
    "text": ("iommu=pt", "--disable-custom-all-reduce"),
    "bat": ("reg add ",),
    "diff": ("train.py:",),     # a change of source code, as in kb/samples.def
}

ASSIGNMENT = re.compile(r'^[A-Za-z_]\w*=("[^"]*"|\$\([^)]*\)|\S*)\s+')


def first_word(command):
    """The program of a shell command, after variables and sudo."""
    while ASSIGNMENT.match(command):
        command = ASSIGNMENT.sub("", command, count=1)
    command = re.sub(r"^sudo\s+", "", command)
    found = re.match(r"[\w.-]+", command)
    return found.group(0) if found else ""


def python_of(command):
    """The command as a module that compiles: a decorator needs a function, `return` one around it. None: it is not Python."""
    body = "\n".join("    " + line for line in command.splitlines())
    for text in (command, "def advised():\n%s\n" % body, command + "\ndef advised(): pass\n"):
        try:
            compile(text, "advice", "exec", dont_inherit=True)
            ast.parse(text)
            return text
        except SyntaxError:
            continue
    return None


def language(command):
    for name, starts in OTHERS.items():
        if command.startswith(starts):
            return name
    if first_word(command) in PROGRAMS or command.startswith("for d in"):
        return "sh"
    return "python" if python_of(command) else "sh"
