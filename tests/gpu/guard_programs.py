# SPDX-License-Identifier: Apache-2.0
"""Programs for guard mode: mistakes that nothing notices without it, and healthy ones. `guard_programs.py NAME` runs one.

A mistake has the line that launches the kernel (`# bad NAME`), the line that allocates what it hits (`# made NAME`) and, if it was freed, the line that
let it go (`# freed NAME`); guard.py compares them with the verdict. Kernels come from PTX or, on the simulated GPU, are that GPU's own; some from
CuPy, Triton or a compiled extension.
"""
import ctypes
import gc
import hashlib
import os
import subprocess
import sys
import tempfile

import torch

PLANTED, HEALTHY = {}, {}
SIM = "CUWHY_SIM" in os.environ
OVERRUN, FREED, SLACK, NOTHING = "illegal-access-out-of-bounds", "illegal-access-use-after-free", "overrun-behind-allocation", "none"
VALUES = "uninitialized-read"


def planted(cause, needs=(), guard="--guard"):
    def add(function):
        PLANTED[function.__name__] = (function, cause, tuple(needs), guard)
        return function
    return add


def healthy(*needs):
    def add(function):
        HEALTHY[function.__name__] = (function, tuple(needs))
        return function
    return add


# ---- kernels ----------------------------------------------------------------------------------------------------

PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry oob_store(.param .u64 to, .param .u64 at)
{
	.reg .b64 %rd<8>;
	.reg .b32 %r<4>;
	.reg .f32 %f<2>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [at];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %tid.x;
	cvt.u64.u32 %rd3, %r1;
	add.s64 %rd2, %rd2, %rd3;
	shl.b64 %rd2, %rd2, 2;
	add.s64 %rd1, %rd1, %rd2;
	mov.f32 %f1, 0f3F800000;
	st.global.f32 [%rd1], %f1;
	ret;
}
.visible .entry oob_load(.param .u64 to, .param .u64 from, .param .u64 at)
{
	.reg .b64 %rd<8>;
	.reg .b32 %r<4>;
	.reg .f32 %f<2>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	ld.param.u64 %rd3, [at];
	cvta.to.global.u64 %rd1, %rd1;
	cvta.to.global.u64 %rd2, %rd2;
	mov.u32 %r1, %tid.x;
	cvt.u64.u32 %rd4, %r1;
	add.s64 %rd3, %rd3, %rd4;
	shl.b64 %rd3, %rd3, 2;
	add.s64 %rd2, %rd2, %rd3;
	ld.global.f32 %f1, [%rd2];
	shl.b64 %rd4, %rd4, 2;
	add.s64 %rd1, %rd1, %rd4;
	st.global.f32 [%rd1], %f1;
	ret;
}
.visible .entry through(.param .u64 table)
{
	.reg .b64 %rd<5>;
	.reg .b32 %r<2>;
	.reg .f32 %f<2>;
	ld.param.u64 %rd1, [table];
	cvta.to.global.u64 %rd1, %rd1;
	ld.global.u64 %rd2, [%rd1];
	cvta.to.global.u64 %rd2, %rd2;
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd2, %rd2, %rd3;
	mov.f32 %f1, 0f3F800000;
	st.global.f32 [%rd2], %f1;
	ret;
}
"""
MODULE = "cuwhy-sim-module 1\ntarget compute_50 ptx 7.0\nkernel oob_store\nkernel oob_load\nkernel through\nkernel spin\n"


class Driver:
    """Kernels through the driver, as a library would launch them."""

    def __init__(self):
        torch.zeros(1, device="cuda")
        self.cuda, self.module = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), (MODULE if SIM else PTX).encode())
        self.store, self.load, self.table = (self.function(name) for name in ("oob_store", "oob_load", "through"))

    def call(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code:
            raise RuntimeError("%s returned %d" % (name, code))

    def function(self, name):
        out = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(out), self.module, name.encode())
        return out

    def launch(self, function, threads, args):
        params = (ctypes.c_void_p * len(args))(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in args])
        self.call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0,
                  ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), params, None)


driver = None


def kernels():
    global driver
    driver = driver or Driver()
    return driver


def write(pointer, index, threads=1):
    kernels().launch(driver.store, threads, (ctypes.c_uint64(pointer), ctypes.c_int64(index)))


def read(out, pointer, index, threads=1):
    kernels().launch(driver.load, threads, (ctypes.c_uint64(out), ctypes.c_uint64(pointer), ctypes.c_int64(index)))


def write_through(table, threads=32):
    """To the address that is in `table`."""
    kernels().launch(driver.table, threads, (ctypes.c_uint64(table.data_ptr()),))


def busy(milliseconds):
    """The current stream has work for this long."""
    if SIM:
        kernels().launch(driver.function("spin"), 1, (ctypes.c_int(milliseconds),))
    else:
        torch.cuda._sleep(int(milliseconds * 1.5e6))


def extension():
    """A C++ extension with a CUDA runtime of its own."""
    source = """
    __global__ void scale(float *data, long n, float factor) { long i = blockIdx.x * 256l + threadIdx.x; if (i <= n) data[i] *= factor; }
    extern "C" void extension_scale(float *data, long n, float factor) { scale<<<n / 256 + 1, 256>>>(data, n, factor); }
    """
    with tempfile.TemporaryDirectory() as folder:
        path, target = os.path.join(folder, "ext.cu"), os.path.join(folder, "libext.so")
        with open(path, "w", encoding="ascii") as stream:
            stream.write(source)
        subprocess.run([os.environ["NVCC"], "-shared", "-Xcompiler", "-fPIC", "-arch=sm_%d%d" % torch.cuda.get_device_capability(),
                        path, "-o", target], check=True)
        found = ctypes.CDLL(target)
    found.extension_scale.argtypes = (ctypes.c_void_p, ctypes.c_long, ctypes.c_float)
    return found


# ---- overruns -----------------------------------------------------------------------------------------------------

@planted(OVERRUN)
def past_one():
    x = torch.zeros(1000, device="cuda")  # made past_one
    y = torch.zeros(1000, device="cuda")
    write(x.data_ptr(), 1000)  # bad past_one
    return y


@planted(OVERRUN)
def past_read():
    x = torch.zeros(1000, device="cuda")  # made past_read
    y = torch.zeros(64, device="cuda")
    read(y.data_ptr(), x.data_ptr(), 980, 32)  # bad past_read
    return y


@planted(OVERRUN)
def past_row():
    x = torch.zeros(64, 100, device="cuda")  # made past_row
    for row in range(65):
        write(x.data_ptr(), row * 100, 100)  # bad past_row
    return x


@planted(OVERRUN)
def past_half():
    """The kernel counts floats, the tensor has halves."""
    x = torch.zeros(2048, device="cuda", dtype=torch.float16)  # made past_half
    write(x.data_ptr(), 1020, 32)  # bad past_half
    return x


@planted(OVERRUN)
def past_large():
    x = torch.zeros(1 << 20, device="cuda")  # made past_large
    y = torch.zeros(1 << 20, device="cuda")
    write(x.data_ptr(), (1 << 20) - 16, 32)  # bad past_large
    return y


@planted(OVERRUN)
def past_tiny():
    x = torch.zeros(4, device="cuda")  # made past_tiny
    write(x.data_ptr(), 4)  # bad past_tiny
    return x


@planted(OVERRUN, guard="--guard=before")
def before_start():
    pad = torch.zeros(1000, device="cuda")
    x = torch.zeros(1000, device="cuda")  # made before_start
    write(x.data_ptr(), -1)  # bad before_start
    return pad


@planted(OVERRUN, guard="--guard=before")
def before_read():
    y = torch.zeros(64, device="cuda")
    x = torch.zeros(1000, device="cuda")  # made before_read
    read(y.data_ptr(), x.data_ptr(), -32, 32)  # bad before_read
    return y


@planted(OVERRUN)
def view_parent():
    """Through a view, past the end of the tensor that it is a view of."""
    parent = torch.zeros(1000, device="cuda")  # made view_parent
    view = parent[900:950]
    write(view.data_ptr(), 0, 128)  # bad view_parent
    return parent


@planted(OVERRUN)
def view_last_row():
    x = torch.zeros(64, 128, device="cuda")  # made view_last_row
    write(x[63].data_ptr(), 128)  # bad view_last_row
    return x


@planted(OVERRUN)
def transposed():
    """The strides of the transposed tensor, as if it were contiguous."""
    x = torch.zeros(48, 64, device="cuda")  # made transposed
    t = x.t()
    for row in range(t.shape[0]):
        write(t.data_ptr(), row * 64, t.shape[1])  # bad transposed
    return x


@planted(OVERRUN)
def past_parameter():
    layer = torch.nn.Linear(100, 40, bias=False, device="cuda")  # made past_parameter
    write(layer.weight.data_ptr(), 4000)  # bad past_parameter
    return layer.weight.detach()


@planted(OVERRUN)
def past_optimizer_state():
    layer = torch.nn.Linear(64, 64, bias=False).cuda()
    adam = torch.optim.AdamW(layer.parameters(), foreach=False)
    layer(torch.ones(4, 64, device="cuda")).sum().backward()
    adam.step()  # made past_optimizer_state
    write(adam.state[layer.weight]["exp_avg"].data_ptr(), 64 * 64)  # bad past_optimizer_state
    return layer.weight.detach()


class PastBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        out = torch.zeros(1000, device="cuda")  # made backward_past
        write(out.data_ptr(), 1000)  # bad backward_past
        return out


@planted(OVERRUN)
def backward_past():
    x = torch.ones(1000, device="cuda", requires_grad=True)
    PastBackward.apply(x).sum().backward()
    return x.grad


@planted(OVERRUN)
def graph_past():
    x = torch.zeros(1000, device="cuda")  # made graph_past
    kernels()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        write(x.data_ptr(), 1000)  # bad graph_past
    graph.replay()
    torch.cuda.synchronize()
    return y


@planted(OVERRUN)
def graph_inside_past():
    """What was allocated while the graph was captured."""
    x = torch.zeros(1000, device="cuda")
    kernels()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2  # made graph_inside_past
        write(y.data_ptr(), 1000)  # bad graph_inside_past
    graph.replay()
    torch.cuda.synchronize()
    return x


@planted(OVERRUN, needs=("triton",))
def compile_past():
    """The result of compiled code, which has an exact size."""
    double = torch.compile(lambda x: x * 2 + 1)  # made compile_past
    x = torch.zeros(1000, device="cuda")
    y = double(x)
    write(y.data_ptr(), 1000)  # bad compile_past
    return y


@planted(OVERRUN)
def driver_past():
    out = ctypes.c_uint64()
    assert kernels().cuda.cuMemAlloc_v2(ctypes.byref(out), ctypes.c_size_t(4000)) == 0  # made driver_past
    write(out.value, 1000)  # bad driver_past


@planted(OVERRUN)
def pool_past():
    out = ctypes.c_uint64()
    assert kernels().cuda.cuMemAllocAsync(ctypes.byref(out), ctypes.c_size_t(4000), None) == 0  # made pool_past
    write(out.value, 1000)  # bad pool_past


@planted(OVERRUN, needs=("cupy",))
def cupy_past():
    """CuPy's own pool rounds to 512 bytes: this array is as large as its memory."""
    import cupy
    fill = cupy.RawKernel('extern "C" __global__ void fill(float *x, int n) { x[blockIdx.x * 128 + threadIdx.x] = n; }', "fill")
    x = cupy.zeros(1024, dtype=cupy.float32)  # made cupy_past
    fill((9,), (128,), (x, 1024))  # bad cupy_past
    cupy.cuda.Device().synchronize()


@planted(OVERRUN, needs=("triton",))
def triton_past():
    from guard_triton import fill_all
    x = torch.zeros(1000, device="cuda")  # made triton_past
    fill_all[(1,)](x, BLOCK=1024)  # bad triton_past
    return x


@planted(OVERRUN, needs=("nvcc",))
def extension_past():
    """`i <= n` in the kernel."""
    x = torch.ones(1000, device="cuda")  # made extension_past
    extension().extension_scale(x.data_ptr(), 1000, 2.0)  # bad extension_past
    return x


# ---- uses after free -------------------------------------------------------------------------------------------------

@planted(FREED)
def freed():
    x = torch.zeros(1000, device="cuda")  # made freed
    pointer = x.data_ptr()
    kernels()
    del x  # freed freed
    write(pointer, 5)  # bad freed


@planted(FREED)
def freed_read():
    x, y = torch.zeros(1000, device="cuda"), torch.zeros(64, device="cuda")  # made freed_read
    pointer = x.data_ptr()
    kernels()
    del x  # freed freed_read
    read(y.data_ptr(), pointer, 0, 32)  # bad freed_read
    return y


@planted(FREED)
def freed_and_reused():
    """Without guard mode, the new tensor is where the old one was."""
    x = torch.zeros(1000, device="cuda")  # made freed_and_reused
    pointer = x.data_ptr()
    kernels()
    del x  # freed freed_and_reused
    y = torch.ones(1000, device="cuda")
    write(pointer, 5)  # bad freed_and_reused
    return y


@planted(FREED)
def freed_busy():
    """The free comes while earlier work on it is still queued."""
    x = torch.zeros(1000, device="cuda")  # made freed_busy
    pointer = x.data_ptr()
    kernels()
    busy(50)
    write(pointer, 5)
    del x  # freed freed_busy
    write(pointer, 6)  # bad freed_busy


@planted(FREED)
def freed_by_main_stream():
    """Used in a side stream, without record_stream, and freed by the stream that made it."""
    x, side = torch.zeros(1000, device="cuda"), torch.cuda.Stream()  # made freed_by_main_stream
    kernels()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        busy(600)
        write(x.data_ptr(), 5)  # bad freed_by_main_stream
    del x  # freed freed_by_main_stream
    for _ in range(100):
        torch.ones(1000, device="cuda")
        torch.cuda.current_stream().synchronize()
    torch.cuda.synchronize()


@planted(FREED)
def freed_temporary():
    def pointer_of(n):
        return (torch.zeros(n, device="cuda") + 1).data_ptr()  # made freed_temporary # freed freed_temporary
    kernels()
    write(pointer_of(1000), 5)  # bad freed_temporary


@planted(FREED)
def freed_large():
    x = torch.zeros(16 << 20, device="cuda")  # made freed_large
    pointer = x.data_ptr()
    kernels()
    x = None  # freed freed_large
    write(pointer, 12 << 20)  # bad freed_large


@planted(FREED)
def freed_list():
    cache = [torch.zeros(1000, device="cuda") for _ in range(8)]  # made freed_list
    pointer = cache[3].data_ptr()
    kernels()
    cache.clear()  # freed freed_list
    write(pointer, 5)  # bad freed_list


@planted(FREED)
def freed_by_assignment():
    """`x.data = …` lets the old memory go; a kernel has the old pointer."""
    layer = torch.nn.Linear(100, 40, bias=False, device="cuda")  # made freed_by_assignment
    pointer = layer.weight.data_ptr()
    kernels()
    layer.weight.data = torch.zeros(40, 100, device="cuda")  # freed freed_by_assignment
    write(pointer, 5)  # bad freed_by_assignment
    return layer.weight.detach()


@planted(FREED)
def freed_many_later():
    """Long after: other tensors came and went."""
    x = torch.zeros(1000, device="cuda")  # made freed_many_later
    pointer = x.data_ptr()
    kernels()
    del x  # freed freed_many_later
    for _ in range(500):
        torch.ones(1000, device="cuda")
    write(pointer, 5)  # bad freed_many_later


class FreedBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        scratch = torch.zeros(1000, device="cuda")  # made backward_freed
        ctx.pointer = scratch.data_ptr()
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        grad = grad * 1
        write(ctx.pointer, 5)  # bad backward_freed
        return grad


@planted(FREED)
def backward_freed():
    x = torch.ones(1000, device="cuda", requires_grad=True)
    kernels()
    FreedBackward.apply(x).sum().backward()  # freed backward_freed
    return x.grad


@planted(FREED)
def graph_freed():
    """A graph's input is deleted before the graph is run again."""
    x = torch.zeros(1000, device="cuda")  # made graph_freed
    kernels()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        write(x.data_ptr(), 5)  # bad graph_freed
    graph.replay()
    torch.cuda.synchronize()
    del x  # freed graph_freed
    graph.replay()
    torch.cuda.synchronize()


@planted(FREED, needs=("triton",))
def triton_freed():
    from guard_triton import fill_at
    x = torch.zeros(1024, device="cuda")  # made triton_freed
    pointer = x.data_ptr()
    del x  # freed triton_freed
    fill_at[(1,)](pointer, BLOCK=1024)  # bad triton_freed


@planted(FREED, needs=("cupy",))
def cupy_freed():
    """Without CuPy's own pool: what that keeps is not freed."""
    import cupy
    cupy.cuda.set_allocator(None)
    fill = cupy.RawKernel('extern "C" __global__ void fill(float *x) { x[threadIdx.x] = 1; }', "fill")
    near = cupy.zeros(1024, dtype=cupy.float32)     # the driver unmaps a chunk in which nothing is left
    x = cupy.zeros(1024, dtype=cupy.float32)  # made cupy_freed
    pointer = x.data.ptr
    del x  # freed cupy_freed
    fill((1,), (128,), (pointer,))  # bad cupy_freed
    cupy.cuda.Device().synchronize()
    del near


# ---- the few bytes behind --------------------------------------------------------------------------------------------

@planted(SLACK)
def slack_write():
    x = torch.zeros(1001, device="cuda")  # made slack_write
    write(x.data_ptr(), 1001)  # bad slack_write
    torch.cuda.synchronize()
    del x


@planted(SLACK)
def slack_bytes():
    x = torch.zeros(1001, device="cuda", dtype=torch.uint8)  # made slack_bytes
    write(x.data_ptr(), 250)  # bad slack_bytes
    torch.cuda.synchronize()
    del x


@planted(SLACK)
def slack_at_the_end():
    x = torch.zeros(333, device="cuda")  # made slack_at_the_end
    write(x.data_ptr(), 333, 3)  # bad slack_at_the_end
    torch.cuda.synchronize()
    globals()["kept"] = x


@planted(SLACK)
def slack_row():
    x = torch.zeros(7, 13, device="cuda")  # made slack_row
    for row in range(7):
        write(x.data_ptr(), row * 13, 14)  # bad slack_row
    torch.cuda.synchronize()
    del x


@planted(SLACK, guard="--guard=align=256")
def slack_wide():
    x = torch.zeros(1000, device="cuda")  # made slack_wide
    write(x.data_ptr(), 1010)  # bad slack_wide
    torch.cuda.synchronize()
    del x


@planted(NOTHING)
def slack_read():
    """A read there cannot be detected."""
    x, y = torch.zeros(1001, device="cuda"), torch.zeros(64, device="cuda")
    read(y.data_ptr(), x.data_ptr(), 1001)
    torch.cuda.synchronize()


# ---- values ----------------------------------------------------------------------------------------------------------

@planted(VALUES, needs=("card",), guard="--guard=values")
def values_empty():
    x = torch.empty(64, device="cuda")  # made values_empty
    write(x.data_ptr(), 0, 32)
    print(x.sum().item())


@planted(NOTHING, needs=("card",), guard="--guard=values")
def values_own_nan():
    x = torch.zeros(64, device="cuda")
    print((x / x).sum().item())


# ---- healthy programs ---------------------------------------------------------------------------------------------------

def digest(*tensors):
    """Of the exact bytes."""
    h = hashlib.sha256()
    for t in tensors:
        h.update(t.detach().contiguous().view(torch.uint8).cpu().numpy().tobytes() if t.numel() else b"")
    return h.hexdigest()[:16]


def train(model, batches, loss=lambda out: out.float().square().mean(), steps=5):
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        value = loss(model(batches(step)))
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
    return digest(value.reshape(1), *model.parameters())


def mlp(width=256):
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.LayerNorm(width), torch.nn.Linear(width, 10)).cuda()


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (t.view(b, n, self.heads, c // self.heads).transpose(1, 2) for t in self.qkv(x).split(c, 2))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, n, c))


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.a, self.b = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.a(x))
        return x + self.mlp(self.b(x))


class Gpt(torch.nn.Module):
    def __init__(self, layers=2, width=128, heads=4, words=512, length=128):
        super().__init__()
        self.word, self.place = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
        self.layers = torch.nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.head = torch.nn.Linear(width, words, bias=False)

    def forward(self, ids):
        return self.head(self.layers(self.word(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))))


class Block(torch.nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.body = torch.nn.Sequential(conv(inner, outer // 4, 1, bias=False), norm(outer // 4), torch.nn.ReLU(),
                                        conv(outer // 4, outer // 4, 3, stride, 1, bias=False), norm(outer // 4), torch.nn.ReLU(),
                                        conv(outer // 4, outer, 1, bias=False), norm(outer))
        self.short = torch.nn.Sequential(conv(inner, outer, 1, stride, bias=False), norm(outer))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet(counts=(3, 4, 6, 3), width=64):
    layers, inner = [torch.nn.Conv2d(3, width, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
                     torch.nn.MaxPool2d(3, 2, 1)], width
    for stage, count in enumerate(counts):
        for number in range(count):
            outer = 4 * width << stage
            layers.append(Block(inner, outer, 2 if stage and not number else 1))
            inner = outer
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(inner, 1000)).cuda()


def ids(step, batch=4, length=64, words=512):
    return torch.randint(words, (batch, length), device="cuda", generator=torch.Generator("cuda").manual_seed(step))


@healthy()
def train_mlp():
    return train(mlp(), lambda step: torch.randn(32, 256, device="cuda"))


@healthy()
def train_gpt():
    return train(Gpt().cuda(), ids)


@healthy()
def train_gpt_bf16():
    with torch.autocast("cuda", torch.bfloat16):
        return train(Gpt().cuda(), ids)


@healthy()
def train_convolutions():
    """cuDNN's fastest gradients are sums in any order: three plain runs, three results."""
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    return train(resnet((1, 1, 1, 1), 16), lambda step: torch.randn(4, 3, 64, 64, device="cuda"))


@healthy()
def train_odd_sizes():
    model = torch.nn.Sequential(torch.nn.Linear(77, 33), torch.nn.Tanh(), torch.nn.Linear(33, 5)).cuda()
    return train(model, lambda step: torch.randn(13, 77, device="cuda"))


@healthy()
def train_checkpointed():
    from torch.utils.checkpoint import checkpoint
    model = Gpt().cuda()
    return train(model, ids, lambda out: out.square().mean() + checkpoint(model.head, out[..., :128], use_reentrant=False).square().mean())


@healthy()
def train_accumulated():
    model, adam = mlp(), None
    adam = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(8):
        model(torch.randn(16, 256, device="cuda")).square().mean().backward()
        if step % 4 == 3:
            adam.step()
            adam.zero_grad()
    return digest(*model.parameters())


@healthy()
def generate():
    model, out = Gpt().cuda().eval(), ids(0, 2, 8)
    with torch.no_grad():
        for _ in range(24):
            out = torch.cat([out, model(out)[:, -1].argmax(-1, keepdim=True)], 1)
    return digest(out)


@healthy()
def graph_inference():
    model, x, graph = mlp().eval(), torch.randn(32, 256, device="cuda"), torch.cuda.CUDAGraph()
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            y = model(x)
        for step in range(5):
            x.copy_(torch.full_like(x, step))
            graph.replay()
    return digest(y)


@healthy()
def graphs_gone():
    """Their memory is given back, and others come."""
    x = torch.randn(64, 64, device="cuda")
    kept = (x @ x).relu()       # cuBLAS starts before the first capture
    for _ in range(5):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = (x @ x).relu() @ x
        graph.replay()
        torch.cuda.synchronize()
        kept = y.clone()
        del graph, y
    return digest(kept)


@healthy()
def streams():
    x, side, parts = torch.randn(512, 512, device="cuda"), torch.cuda.Stream(), []
    for _ in range(20):
        y = x @ x
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = y.softmax(-1)
            y.record_stream(side)
        del y
        torch.cuda.current_stream().wait_stream(side)
        z.record_stream(torch.cuda.current_stream())
        parts.append(z.sum())
    return digest(torch.stack(parts))


@healthy()
def pinned_batches():
    total = torch.zeros(1, device="cuda")
    for step in range(20):
        batch = torch.full((1000,), float(step)).pin_memory()
        total += batch.to("cuda", non_blocking=True).sum()
    return digest(total)


@healthy()
def profiled():
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        out = train(mlp(), lambda step: torch.randn(32, 256, device="cuda"), steps=2)
    assert len(p.events()) > 10
    return out


@healthy()
def statistics():
    """What PyTorch says about memory is plausible."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4 << 20, torch.cuda.memory_allocated() - before
    assert torch.cuda.memory_reserved() >= 4 << 20 and torch.cuda.max_memory_allocated() >= 4 << 20
    del x
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == before
    torch.cuda.memory_summary(), torch.cuda.memory_snapshot(), torch.cuda.memory_stats(), torch.cuda.mem_get_info()
    kept = torch.zeros(1 << 18, device="cuda")
    torch.cuda.reset_accumulated_memory_stats()
    ever = [torch.cuda.memory_stats()["allocation.all." + which] for which in ("allocated", "freed")]
    assert ever == [0, 0], ever
    del kept
    gc.collect()
    assert torch.cuda.memory_stats()["allocation.all.freed"] == 1
    return "fine"


@healthy()
def threads():
    import threading
    out = {}

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.full((300, 300), 1 / (number + 1), device="cuda")
            for _ in range(50):
                x = (x @ x).clamp(0, 1)
            out[number] = x.sum().item()
    every = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    return repr(sorted(out.items()))


@healthy()
def many_small():
    every = [torch.full((n % 50 + 1,), n, device="cuda") for n in range(800)]
    return digest(*every)


@healthy("triton")
def compiled():
    model = torch.compile(mlp())
    return digest(*[model(torch.ones(32, 256, device="cuda") * n) for n in range(3)])


@healthy("triton")
def compiled_with_graphs():
    model = torch.compile(mlp().eval(), mode="reduce-overhead")
    with torch.no_grad():
        return digest(*[model(torch.ones(32, 256, device="cuda") * n).clone() for n in range(6)])


# ---- what it costs -----------------------------------------------------------------------------------------------------

def steps_of(kind):
    if kind == "launch-bound":
        return mlp(), lambda step: torch.randn(8, 256, device="cuda")
    if kind == "gpt2-small":
        return Gpt(12, 768, 12, 50257, 1024).cuda(), lambda step: ids(step, 8, 1024, 50257)
    return resnet(), lambda step: torch.randn(32, 3, 224, 224, device="cuda")


def cost(kind, number):
    import time
    model, batches = steps_of(kind)
    adam, times = torch.optim.AdamW(model.parameters(), lr=1e-4), []
    for step in range(number + 3):
        began = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batches(step)).float().square().mean()
        loss.backward()
        adam.step()
        adam.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    print("ms %.3f" % (1000 * sorted(times[3:])[number // 2]))


def main():
    name = sys.argv[1]
    if name == "cost":
        cost(sys.argv[2], int(sys.argv[3]))
        return
    torch.manual_seed(1)
    if name in HEALTHY:
        print(name, HEALTHY[name][0](), flush=True)
    else:
        kept = PLANTED[name][0]()
        torch.cuda.synchronize()
        print("ended", kept is None, flush=True)


if __name__ == "__main__":
    main()
