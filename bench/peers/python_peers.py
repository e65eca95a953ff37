"""What a call from Python costs beyond the same call from C++, and the losses in a PyTorch step.

    tools/python/test && ninja -C build/cpu loss_call
    build/python/3.11/venv/bin/python bench/peers/python_peers.py

The first part times cfaa.vertical_loss on sets of four rows, where nearly all is overhead, and the
same in C++ (bench/peers/loss_call.cpp), in turns. The second part, where PyTorch is installed,
times both losses forward and backward at the paper's sizes by the operators of cfaa.torch and by
the eager operations of bench/peers/cfaa_torch.py, in turns.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

import cfaa

ROUNDS = 5
HERE = pathlib.Path(__file__).resolve().parent
LOSS_CALL = HERE.parents[1] / "build/cpu/loss_call"


def microseconds(call, calls):
    call()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return 1e6 * (time.perf_counter() - start) / calls


def call_overhead():
    zs, zt = np.random.default_rng(0).normal(size=(2, 4, 2)).astype(np.float32)
    cfaa.set_threads(1)
    python, native = [], []
    for _ in range(ROUNDS):
        python.append(microseconds(lambda: cfaa.vertical_loss(zs, zt, k=2, ot_solver="exact"), 3000))
        native.append(float(subprocess.run([LOSS_CALL], check=True, capture_output=True).stdout))
    cfaa.set_threads(0)
    python, native = min(python), min(native)
    return {"python_us": python, "cpp_us": native, "overhead_us": python - native}


def torch_step():
    import torch

    sys.path.insert(0, str(HERE))
    import cfaa_torch as eager

    import cfaa.torch

    torch.manual_seed(0)
    zs, zt = (torch.randn(256, 300, requires_grad=True) for _ in range(2))

    def step(vertical, horizontal):
        zs.grad = zt.grad = None
        (vertical(zs, zt) + horizontal(zs, zt)).backward()

    def seconds(vertical, horizontal):
        start = time.perf_counter()
        step(vertical, horizontal)
        return time.perf_counter() - start

    options = {"k": 128, "alpha": 0.1, "alpha_scale": "relative", "typical_iterations": 10,
               "epsilon": 0.05, "sinkhorn_iterations": 100, "nu": 0.1, "nu_scale": "absolute",
               "slim_iterations": 3, "delta": 1e-4, "graph_floor": 1e-5}
    ways = {"cfaa": (lambda *pair: cfaa.torch.vertical_loss(*pair, k=128),
                     cfaa.torch.horizontal_loss),
            "eager": (lambda *pair: eager.vertical([pair], options),
                      lambda *pair: eager.horizontal([pair], options))}
    times = {name: [] for name in ways}
    for way in ways.values():
        step(*way)
    for _ in range(3):
        for name, way in ways.items():
            times[name].append(seconds(*way))
    return {f"{name}_ms": 1e3 * statistics.median(values) for name, values in times.items()}


if __name__ == "__main__":
    results = {"numpy_call": call_overhead()}
    try:
        import torch  # noqa: F401
    except ImportError:
        print("PyTorch is not installed: its step is not timed", file=sys.stderr)
    else:
        results["torch_step"] = torch_step()
    print(json.dumps(results, indent=2))
