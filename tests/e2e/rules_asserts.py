# SPDX-License-Identifier: Apache-2.0
"""Device-side asserts: what was asserted, where, and the cause that follows, through kernels named like PyTorch's."""
import os
import subprocess

from rules_dumps import explain
from toolbox import same

ATEN = "/pytorch/aten/src/ATen/native/cuda/"
GATHER = ("_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb", ATEN + "IndexKernelUtils.cu", 16,
          "vectorized_gather_kernel", 'ind >=0 && ind < ind_dim_size && "vectorized gather kernel index out of bounds"')
NLL = ("_ZN2at6native38nll_loss_forward_reduce_cuda_kernel_2dEv", ATEN + "Loss.cu", 245,
       "nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes")
INDEX = ("_ZN2at6native24index_elementwise_kernelEv", ATEN + "IndexKernel.cu", 111, "operator()",
         '-sizes[i] <= index && index < sizes[i] && "index out of bounds"')
BCE = ("_ZN2at6native29vectorized_elementwise_kernelEv", ATEN + "Loss.cu", 90, "operator()",
       "input_val >= zero && input_val <= one")
# as PyTorch 2.15 names the kernel: only its template arguments tell that it is this loss
BCE_NAMED = ("_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_29binary_cross_entropy_out_cudaERKNS_6TensorES4_RKSt8optionalIS2_ElRS2_"
             "ENKUlvE_clEvENKUlvE0_clEvEUlffE_St5arrayIPcLm3EELb0EEEviT0_T1_",) + BCE[1:]
SAMPLE = ("_ZN2at6native21sampleMultinomialOnceEv", ATEN + "MultinomialKernel.cu", 112, "sampleMultinomialOnce",
          "val >= zero")
TRITON = ("triton_poi_fused_index_0", "/tmp/torchinductor_me/ab/cab.py", 24, "unknown",
          "index out of bounds: 0 <= tmp4 < 10")
OWN = ("_Z6mergedPfi", "/src/merge.cu", 7, "merged", "left <= right")

PROGRAM = """
import cudrv
cudrv.init()
nop = cudrv.kernel("nop")
bad = cudrv.asserting(%r, %r)
embedding = cross_entropy = wpe = cudrv.fake_torch(%r)
cudrv.launch(nop, (1,), (1,))
%s
cudrv.launch(nop, (1,), (1,))
cudrv.synchronize()
"""
LINE = 8


def program(kernel, call, function="cross_entropy"):
    words = "%s:%d: %s: %s" % kernel[1:]
    return PROGRAM % (kernel[0], words, function, call)


def judge(box, kernel, call, *options, function="cross_entropy"):
    run = box.under(box.script(program(kernel, call, function)), *options)
    return box.verdict(run), run


def said(verdict):
    a = verdict["fault"]["assert"]
    return a["file"], a["line"], a["function"], a["condition"]


def rule__each_assertion_has_its_cause_line_and_words(box):
    plain = "cudrv.launch(bad, (2,), (64,))"
    for kernel, call, function, cause, sure in (
            (NLL, "cross_entropy(bad)", "cross_entropy", "label-out-of-range", "certain"),
            (GATHER, "embedding(bad)", "embedding", "embedding-index-out-of-range", "certain"),
            (GATHER, "wpe(bad)", "embedding", "position-index-out-of-range", "likely"),
            (GATHER, plain, "gather", "index-out-of-range", "certain"),
            (INDEX, plain, "gather", "index-out-of-range", "certain"),
            (SAMPLE, plain, "gather", "invalid-probability", "certain"),
            (BCE, plain, "binary_cross_entropy", "input-out-of-range", "likely"),
            (TRITON, plain, "gather", "index-out-of-range", "certain"),
            (("triton_poi_fused_add_embedding_0",) + TRITON[1:], plain, "gather", "embedding-index-out-of-range", "likely"),
            (("triton_per_fused_nll_loss_forward_1",) + TRITON[1:], plain, "gather", "label-out-of-range", "likely"),
            (OWN, plain, "gather", "kernel-assert", "certain")):
        verdict, _ = judge(box, kernel, call, function=function)
        same((verdict["cause"], verdict["certainty"]), (cause, sure), kernel[0])
        same(verdict["where"]["line"], LINE, kernel[0])
        same(said(verdict), kernel[1:], kernel[0])


def rule__of_two_lines_the_common_function_counts(box):
    for calls, cause, sure in (("embedding(bad)\nembedding(bad)", "embedding-index-out-of-range", "certain"),
                               ("embedding(bad)\ncudrv.launch(bad, (1,), (4,))", "index-out-of-range", "likely")):
        verdict, _ = judge(box, GATHER, calls, function="embedding")
        same((verdict["cause"], verdict["certainty"]), (cause, sure), calls)


def rule__a_range_that_a_nan_breaks_too_names_both(box):
    verdict, _ = judge(box, BCE, "cudrv.launch(bad, (1,), (1,))")
    same([(c["cause"], c["certainty"]) for c in verdict["candidates"]],
         [("input-out-of-range", "likely"), ("nan-in-loss-assert", "possible")], "candidates")


def rule__the_bound_in_a_condition_is_said_and_can_be_pasted(box):
    verdict, _ = judge(box, TRITON, "embedding(bad)", function="embedding")
    assert any("10 rows" in text for text in verdict["why"]), verdict["why"]
    assert any("ids >= 10" in (fix["command"] or "") for fix in verdict["fix"]), verdict["fix"]


WITHOUT_A_DUMP = ((NLL, "cross_entropy(bad)", "cross_entropy", "label-out-of-range"),
                  (GATHER, "embedding(bad)", "embedding", "embedding-index-out-of-range"),
                  (GATHER, "wpe(bad)", "embedding", "position-index-out-of-range"),
                  (SAMPLE, "cudrv.launch(bad, (1,), (1,))", "x", "invalid-probability"),
                  (INDEX, "cudrv.launch(bad, (1,), (1,))", "x", "index-out-of-range"),
                  (BCE_NAMED, "cudrv.launch(bad, (1,), (1,))", "x", "input-out-of-range"),
                  (OWN, "cudrv.launch(bad, (1,), (1,))", "x", "kernel-assert"))


def rule__without_a_dump_an_assertion_is_likely_at_most(box):
    for kernel, call, function, cause in WITHOUT_A_DUMP:
        verdict, _ = judge(box, kernel, call, "--no-core-dump", function=function)
        same((verdict["cause"], verdict["certainty"]), (cause, "likely"), kernel[0])
        same(verdict["where"]["line"], LINE, kernel[0])
        same(said(verdict), kernel[1:], "as the driver printed it")


def rule__the_report_says_what_the_driver_says(box):
    _, run = judge(box, NLL, "cross_entropy(bad)")
    shown = subprocess.run([box.cuwhy, "explain", "-v", run.folder], capture_output=True, text=True, env=box.env(COLUMNS="400"))
    words = " ".join(shown.stdout.split())
    assert "Assertion `%s` failed at %s:%d in %s" % (NLL[4], NLL[1], NLL[2], NLL[3]) in words, shown.stdout


def rule__a_bare_dump_knows_the_condition_but_not_whose_table(box):
    path = os.path.join(box.scratch, "core")
    env = dict(CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_FILE=path, CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION="0")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages")
    for kernel, cause, sure in ((NLL, "label-out-of-range", "certain"), (GATHER, "index-out-of-range", "likely"),
                                (INDEX, "index-out-of-range", "certain")):
        box.plain_sim(box.script(program(kernel, "embedding(bad)")), gpu="h200", PYTHONPATH=here, **env)
        verdict = explain(box, path)
        os.unlink(path)
        same((verdict["cause"], verdict["certainty"]), (cause, sure), kernel[0])
        same(said(verdict), kernel[1:], kernel[0])


INDICES = """
import ctypes
import cudrv
cudrv.init()
gather = cudrv.kernel("gather")
index = list(range(64))
for place, value in %r:
    index[place] = value
out, table, at = cudrv.alloc(4 * 64), cudrv.alloc(4 * 100), cudrv.alloc(8 * 64)
cudrv.call("cuMemcpyHtoD_v2", ctypes.c_uint64(at), (ctypes.c_int64 * 64)(*index), ctypes.c_size_t(8 * 64))
cudrv.launch(gather, (2,), (32,), ctypes.c_uint64(out), ctypes.c_uint64(table), ctypes.c_uint64(at), ctypes.c_int(64), ctypes.c_int(100))
cudrv.synchronize()
"""


def rule__a_dump_with_memory_has_the_values_that_failed(box):
    for gpu in ("sim:h200", "sim:a100"):
        for bad, words in (([(37, 100)], "the index at position 37 is 100"),
                           ([(3, -7), (9, 1 << 40)], "the index at position 3 is -7, the index at position 9 is 1099511627776"),
                           ([(i, 200 + i) for i in range(32, 38)], "the index at position 32 is 232, the index at position 33 is 233, "
                            "the index at position 34 is 234, the index at position 35 is 235 and 2 more")):
            verdict = box.verdict(box.under(box.script(INDICES % bad), "--dump-memory", gpu=gpu))
            said = verdict["fault"]["assert"]
            same((verdict["cause"], said["values"]), ("index-out-of-range", words), "%s %s" % (gpu, bad))
            same((said["value"], said["at"]), (str(bad[0][1]), bad[0][0]), "the first")
            assert any("--dump-memory" in str(fix) for fix in verdict["fix"]) is False, verdict["fix"]


def rule__a_dump_without_memory_says_where_the_value_is(box):
    verdict = box.verdict(box.under(box.script(INDICES % [(37, 100)]), "--no-values", gpu="sim:h200"))
    said = verdict["fault"]["assert"]
    same((said.get("values"), said["places"], said["at"]), (None, "the index at position 37", 37), "where")
    assert any("--dump-memory" in str(fix) for fix in verdict["fix"]), verdict["fix"]
