"""The time of a training step on a GPU, part by part, from what can be counted without one.

Used by `tools/kernel_report --budget`. A figure is a floor: the instructions of a kernel's inner
loops, counted in its SASS by the pipe they occupy, times how often the loops run at the paper's
sizes, or bytes over a link. Nothing is measured; what can only be inferred says so.
"""

import math
import os
import re
import shutil
import subprocess
import textwrap

# Multiprocessors, clock, and warp instructions a clock and multiprocessor by pipe: fp32 (an add that
# is not fused into a multiplication occupies it like one that is), integers and selections, special
# functions, shared memory and shuffles, all. Then flop/s of double on tensor cores, bytes/s from the
# host and of the device's memory, and flop/s of float and of TF32.
GPUS = {
    "A100": {"processors": 108, "clock": 1.41e9, "fp32": 2, "alu": 2, "mufu": 0.5, "lds": 1,
             "issue": 4, "fp64_tensor": 19.5e12, "link": 25e9, "memory": 1555e9,
             "fp32_rate": 19.5e12, "tf32_rate": 156e12},
    "H100": {"processors": 132, "clock": 1.98e9, "fp32": 4, "alu": 2, "mufu": 0.5, "lds": 1,
             "issue": 4, "fp64_tensor": 67e12, "link": 50e9, "memory": 3350e9,
             "fp32_rate": 67e12, "tf32_rate": 494e12},
}
PIPES = {"fp32": r"(FADD|FMUL|FFMA|IMAD)\b", "mufu": r"MUFU\b", "lds": r"(LDS|STS|SHFL)\b",
         "alu": r"(FSEL|FMNMX|FSETP|SEL|ISETP|IADD3|IMNMX|LOP3|SHF|LEA|PLOP3|VIADD|VIMNMX)\b"}


def find_nvdisasm(nvcc):
    beside = os.path.join(os.path.dirname(nvcc), "nvdisasm")
    for candidate in (os.environ.get("NVDISASM"), shutil.which("nvdisasm"), beside):
        if candidate and shutil.which(candidate):
            return candidate
    return None


class Loop:
    """An innermost loop of a kernel: its instructions by pipe."""

    def __init__(self, instructions):
        self.instructions = len(instructions)
        self.count = {pipe: sum(bool(re.match(r"(@\S+\s+)?" + pattern, text))
                                for text in instructions) for pipe, pattern in PIPES.items()}
        for name in ("FADD", "FFMA", "MUFU.EX2"):
            self.count[name] = sum(name in text for text in instructions)

    def clocks(self, gpu):
        """Of a multiprocessor, for one pass of one warp: the fullest pipe's."""
        return max([self.instructions / gpu["issue"]] +
                   [self.count[pipe] / gpu[pipe] for pipe in PIPES])


def innermost_loops(sass, kernel):
    """Of the kernel whose mangled name holds every part of `kernel`."""
    for section in re.split(r"\.section\s+\.text\.", sass)[1:]:
        name = section.split(",")[0]
        if not all(part in name for part in kernel):
            continue
        labels, instructions = {}, []
        for line in section.splitlines():
            if found := re.match(r"\s*(\.L_\S+):", line):
                labels[found.group(1)] = len(instructions)
            elif found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
                instructions.append(found.group(1))
        spans = []
        for at, text in enumerate(instructions):
            found = re.search(r"BRA\S*\s.*?`\((\.L_\S+?)\)", text)
            if found and labels.get(found.group(1), at + 1) <= at:
                spans.append((labels[found.group(1)], at))
        return [Loop(instructions[first:last + 1]) for first, last in spans
                if not any(first <= a and b <= last for a, b in spans if (a, b) != (first, last))]
    return []


def disassemble(nvcc, nvdisasm, root, source):
    cubin = root / "build/kernel_report" / f"{source}.budget.cubin"
    cubin.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([nvcc, "-std=c++20", "-arch=sm_80", "-cubin", "-I", str(root),
                    "--expt-relaxed-constexpr", "--extended-lambda", "-DCFAA_HAS_CUDA=1", "-o",
                    str(cubin), str(root / "kernels" / source)], check=True)
    text = subprocess.run([nvdisasm, "-c", str(cubin)], check=True, capture_output=True,
                          text=True).stdout
    cubin.unlink()
    return text


def microseconds(gpu, loops, passes, blocks):
    """`passes` of one block through each loop, by warps; the last wave of blocks counted whole."""
    clocks = sum(loop.clocks(gpu) * count for loop, count in zip(loops, passes))
    return 1e6 * clocks * math.ceil(blocks / gpu["processors"]) / gpu["clock"]


def batch_bytes(sizes):
    """What a step copies: which reviews a row has, and the lists of the histories at capacity."""
    reviews = 2 * batch_rows(sizes) * (4 + 4 + 4)
    histories = 2 * batch_rows(sizes) * 100 * (4 + 4 + 4 + 4)  # index and weight, both ways round
    return reviews + histories


def batch_rows(sizes):
    """Rows of a side, of both domains: interactions and their negatives, 1 and 4."""
    return sizes["N"] * (1 + 1) + sizes["N"] * (1 + 4)


def review_bytes(sizes):
    """Of an entity's sum in float, of one review in fp16, and of the vector that is made of them."""
    return 2 * batch_rows(sizes) * 768 * (4 + 2 + 4)


def tower_flops(sizes):
    """Products of two layers, 769 inputs and D: forward, and of the weights; of the inputs once."""
    d = sizes["D"]
    return 2 * 2 * batch_rows(sizes) * (2 * 769 * d + 3 * d * d)


def budget(nvcc, nvdisasm, root, sizes):
    """Rows of (part, bound by, 0.1.0, after, now, how `now` was obtained)."""
    n, k, problems = sizes["N"], sizes["K"], sizes["Q"]
    typical = [loop for loop in innermost_loops(
        disassemble(nvcc, nvdisasm, root, "typical_samples.cu"),
        ["typical_samples_kernelIf", "Shared", "Li8E"]) if loop.count["MUFU.EX2"] >= 16][:1]
    per_pair = typical[0].instructions / typical[0].count["MUFU.EX2"]
    sums_per_pair = typical[0].count["fp32"] / typical[0].count["MUFU.EX2"]
    passes = [n * k * sizes["I"] / 32 / typical[0].count["MUFU.EX2"]]
    typical_us = [microseconds(gpu, typical, passes, sizes["S"] * sizes["D"])
                  for gpu in GPUS.values()]

    # A pass of a warp is an iteration: both products with the 64 entries of each of its threads.
    sinkhorn = [loop for loop in innermost_loops(
        disassemble(nvcc, nvdisasm, root, "sinkhorn_registers.cu"),
        ["sinkhorn_registers_kernelIf", "Li8E"]) if loop.count["FFMA"] >= 2 * 64][:1]
    passes = [k * k / 64 / 32 * (sizes["J"] - 1)]
    sinkhorn_us = [microseconds(gpu, sinkhorn, passes, problems) for gpu in GPUS.values()]

    polar_flops = (2 * sizes["S"] * 9 + sizes["P"] * 12) * 3 * 2 * sizes["D"] ** 3
    polar_us = [1e6 * polar_flops / gpu["fp64_tensor"] for gpu in GPUS.values()]

    products = {name: [1e6 * tower_flops(sizes) / gpu[name] for gpu in GPUS.values()]
                for name in ("fp32_rate", "tf32_rate")}
    towers_us = [550, 300]  # inferred for 0.1.0
    faster_us = [all_of - slow + fast for all_of, slow, fast in
                 zip(towers_us, products["fp32_rate"], products["tf32_rate"])]
    review_us = [1e6 * review_bytes(sizes) / gpu["memory"] for gpu in GPUS.values()]

    size = batch_bytes(sizes)
    upload_us = [1e6 * size / gpu["link"] for gpu in GPUS.values()]
    delivery_us = [1e6 * 2 * size / gpu["memory"] for gpu in GPUS.values()]

    def pair(values):
        return " / ".join(f"{round(value, -1):.0f}" for value in values)

    return [
        ("eigensolver", "fp64 tensor cores", "6,500-13,000 / 5,000-10,000", "1,200 / 800",
         pair(polar_us),
         f"floor by {polar_flops / 1e9:.1f} Gflop of products in place of eigenvectors: 2 x 4 polar "
         "factors of 9 steps and 2 of 12, a step being 3 products"),
        ("Cholesky, solves", "latency", "1,000-3,000", "300", "340 / 260",
         f"inferred: 4 calls of {2 * math.ceil(sizes['D'] / 32) + 1} nodes, at 4 and 3 microseconds "
         "each"),
        ("typical samples", "fp32 pipe / issue", "900-1,000 / 500-600", "250 / 150",
         pair(typical_us),
         f"floor by SASS: {per_pair:.1f} instructions a pair, {sums_per_pair:.1f} of them additions "
         "and multiplications, Psi in registers; 0.1.0 had 14.4 and 16.7 in two passes, a floor of "
         "680 / 400"),
        ("Sinkhorn", "fp32 pipe / issue", "700-800 / 450-550", "175 / 115", pair(sinkhorn_us),
         f"floor by SASS: {sinkhorn[0].instructions} instructions an iteration of a warp, 128 of "
         f"them its multiplications and {sinkhorn[0].count['lds']} loads, stores and shuffles "
         "(those of a tolerance, which training leaves at 0, counted in), the kernel matrix in "
         "registers; the multiplications alone are "
         + pair([1e6 * 64 * (sizes["J"] - 1) * 2 / gpu["fp32"] * 8
                 * math.ceil(problems / gpu["processors"]) / gpu["clock"]
                 for gpu in GPUS.values()])
         + ", so that the aim is out of reach on an A100"),
        ("batch upload", "device memory", "710 / 360", "hidden", pair(delivery_us),
         f"at most {size / 1e6:.1f} MB, were every history of full length, copied within the device; "
         f"from the host they come during the step before, in {pair(upload_us)} at 25 and 50 GB/s. "
         f"Review vectors are no part of it: they are made on the device from what lies there, "
         f"{review_bytes(sizes) / 1e6:.0f} MB, {pair(review_us)}"),
        ("host assembly", "the host's threads", "15,000", "< 2,000", "not counted",
         "during the step before, by all threads of the host, and without the review vectors since "
         "those are made on the device; `cfaa_gpu bench` measures it on one thread of the host"),
        ("towers, scorer", "fp32 pipe", "550 / 300", "300 / 150", pair(towers_us),
         f"inferred: as in 0.1.0, of which {pair(products['fp32_rate'])} are products at the peak; "
         f"with `train.precision` tf32 or bf16, which reaches every layer of whole 16 bytes, these "
         f"are {pair(products['tf32_rate'])}, and the part {pair(faster_us)}"),
        ("small nodes", "launches", "400-500", "150", "300-400",
         "inferred: one graph, as the log of a run says"),
        ("step", "", "15,000-20,000 / 15,000", "3,000 / 2,000",
         pair([polar + rest + typical + couplings + delivery + towers + 350
               for polar, rest, typical, couplings, delivery, towers in
               zip(polar_us, [340, 260], typical_us, sinkhorn_us, delivery_us, towers_us)]),
         "the sum of the parts, as if none ran beside another. Half of it are floors, which no GPU "
         "quite reaches; on the other hand typical samples and Sinkhorn run beside the eigensolver "
         "and Cholesky, which leave multiprocessors idle"),
    ]


def print_budget(rows):
    head = ("part", "bound by", "0.1.0", "after", "now")
    for row in [head, ("---",) * len(head), *(row[:5] for row in rows)]:
        print("| " + " | ".join(row) + " |")
    print("\nHow \"now\" was obtained:\n")
    for row in rows:
        print(textwrap.fill(f"- {row[0]}: {row[5]}.", 100, subsequent_indent="  "))
