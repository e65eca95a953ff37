"""The alignment ops beside PyTorch, POT and OTT-JAX, timed in turn on the same threads.

    bench/peers/run build/cpu/cfaa_gpu            makes an environment with the peers, then this

Each peer computes the same thing, forward and backward, on the same sizes; its result is checked
against a float64 run of the same formulas before it is timed. Ours comes from `cfaa_gpu bench --out`
started by this script. The median of the repetitions is reported; a peer that is not installed is
left out and said so.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="path of cfaa_gpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--n", type=int, default=256)
    parser.add_argument("--d", type=int, default=300)
    parser.add_argument("--k", type=int, default=128)
    parser.add_argument("--typical-iterations", type=int, default=10)
    parser.add_argument("--sinkhorn-iterations", type=int, default=50)
    parser.add_argument("--slim-iterations", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="at least, per case")
    parser.add_argument("--only", default="", help="names of cases, separated by commas")
    parser.add_argument("--json", default="", help="file for the figures")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(ARGUMENTS.threads)
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads=%d" % ARGUMENTS.threads
)

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(ARGUMENTS.threads)

ALPHA, EPSILON, NU, DELTA, FLOOR = 0.1, 0.05, 0.1, 1e-4, 1e-5


def embeddings(dtype):
    """Four sets: users and items of both domains, shifted and scaled against each other."""
    random = np.random.default_rng(1)
    shape = (ARGUMENTS.n, ARGUMENTS.d)
    source = [random.normal(0.0, 0.5, shape) for _ in range(2)]
    target = [random.normal(0.3, 0.7, shape) for _ in range(2)]
    return [torch.tensor(z, dtype=dtype, requires_grad=True) for z in source + target]


# ---- typical samples ----------------------------------------------------------------------------

def quantile_start(z, k):
    n = z.shape[0]
    position = ((torch.arange(k, dtype=torch.float64) + 0.5) * n / k - 0.5).clamp(0, n - 1)
    low = position.floor().long()
    high = (low + 1).clamp(max=n - 1)
    weight = (position - low).to(z.dtype)[:, None]
    ordered = z.detach().sort(dim=0).values
    return ordered[low] * (1 - weight) + ordered[high] * weight


def typical_set(z, alpha):
    """z (N, D), alpha (D): M (K, D); Psi is held fixed, so only the last round carries gradient."""
    m = quantile_start(z, ARGUMENTS.k)
    with torch.no_grad():
        for _ in range(ARGUMENTS.typical_iterations):
            psi = torch.softmax(-(z[:, None, :] - m[None]) ** 2 / alpha, dim=1)
            weight = psi.sum(0)
            m = torch.einsum("nkd,nd->kd", psi, z) / weight
    return torch.einsum("nkd,nd->kd", psi, z) / weight


def typical_samples(sets):
    outputs = []
    for source, target in ((sets[0], sets[2]), (sets[1], sets[3])):
        variance = (source.detach().var(0, unbiased=False) + target.detach().var(0, unbiased=False)) / 2
        outputs += [typical_set(source, ALPHA * variance), typical_set(target, ALPHA * variance)]
    loss = sum(m.square().sum() for m in outputs)
    loss.backward()
    return loss


# ---- couplings ----------------------------------------------------------------------------------

def coupling_samples(dtype):
    random = np.random.default_rng(2)
    shape = (2 * ARGUMENTS.d, ARGUMENTS.k)
    source = np.sort(random.normal(0.0, 0.5, shape), axis=1)
    target = np.sort(random.normal(0.3, 0.7, shape), axis=1)
    return [torch.tensor(m, dtype=dtype, requires_grad=True) for m in (source, target)]


def couplings(samples):
    source, target = samples
    with torch.no_grad():
        cost = (source[:, :, None] - target[:, None, :]) ** 2
        scaled = cost / (EPSILON * cost.mean((1, 2), keepdim=True))
        log_weight = -float(np.log(ARGUMENTS.k))
        f = torch.zeros_like(source)
        g = torch.zeros_like(target)
        for _ in range(ARGUMENTS.sinkhorn_iterations):
            f = log_weight - torch.logsumexp(g[:, None, :] - scaled, dim=2)
            g = log_weight - torch.logsumexp(f[:, :, None] - scaled, dim=1)
        plan = torch.exp(f[:, :, None] + g[:, None, :] - scaled)
    loss = (plan * (source[:, :, None] - target[:, None, :]) ** 2).sum()
    loss.backward()
    return loss


# ---- horizontal loss ----------------------------------------------------------------------------

def slim(z):
    """B of the last round; rounds in float64 as ours, Phi held fixed in each."""
    z = z.double()
    gram = z.T @ z
    eye = torch.eye(z.shape[1], dtype=torch.float64)
    phi = eye
    for round_index in range(ARGUMENTS.slim_iterations):
        last = round_index + 1 == ARGUMENTS.slim_iterations
        with torch.set_grad_enabled(last):
            xi = phi + phi.T
            theta = torch.cholesky_inverse(torch.linalg.cholesky(gram + NU * xi))
            product = theta @ xi
            gamma = (1 - NU * product.diagonal()) / theta.diagonal()
            b = eye - NU * product - theta * gamma
        if not last:
            values, vectors = torch.linalg.eigh(b.detach() @ b.detach().T + DELTA * eye)
            phi = (vectors * values.rsqrt()) @ vectors.T
    return b


def graph_distance(b_source, b_target, dtype):
    traces, factors = [], []
    for b in (b_source, b_target):
        b = (b - torch.diag(b.diagonal())).to(dtype)
        d = b.shape[0]
        a = (b.abs() + b.abs().T) / 2 + FLOOR * (1 - torch.eye(d, dtype=dtype))
        laplacian = torch.diag(a.sum(1)) - a
        sigma = torch.cholesky_inverse(torch.linalg.cholesky(laplacian + 1.0 / d))
        traces.append(sigma.diagonal().sum())
        factors.append(torch.linalg.cholesky(sigma))
    r = factors[0].T @ factors[1]
    values = torch.linalg.eigvalsh(r @ r.T).clamp(min=1e-30)
    return traces[0] + traces[1] - 2 * values.sqrt().sum()


def horizontal(sets):
    loss = 0
    for source, target in ((sets[0], sets[2]), (sets[1], sets[3])):
        loss = loss + graph_distance(slim(source), slim(target), source.dtype)
    loss.backward()
    return loss


# ---- timing -------------------------------------------------------------------------------------

def median_seconds(work, reset=lambda: None):
    reset()
    work()
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < ARGUMENTS.seconds:
        reset()
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def clear_gradients(tensors):
    for tensor in tensors:
        tensor.grad = None


def torch_rows(function, make_inputs):
    """Eager and compiled, each checked against float64 first."""
    rows = {}
    expected = function(make_inputs(torch.float64)).item()
    inputs = make_inputs(torch.float32)
    for label, call in (("torch eager", function), ("torch.compile", torch.compile(function))):
        try:
            value = call(inputs).item()
        except Exception as failure:  # a compiler that is not there
            rows[label] = "failed: " + str(failure).split("\n")[0][:60]
            continue
        if not abs(value - expected) <= 2e-3 * abs(expected):
            rows[label] = "wrong: %g against %g" % (value, expected)
            continue
        rows[label] = median_seconds(lambda: call(inputs), lambda: clear_gradients(inputs))
    return rows


def pot_rows():
    """POT's log-domain Sinkhorn, problem by problem: timed on 12 of them and scaled, forward only."""
    try:
        import ot
    except ImportError:
        return {"POT": "not installed"}
    source, target = (m.detach().numpy().astype(np.float64) for m in coupling_samples(torch.float64))
    weight = np.full(ARGUMENTS.k, 1.0 / ARGUMENTS.k)

    def solve():
        for q in range(12):
            cost = (source[q][:, None] - target[q][None, :]) ** 2
            ot.bregman.sinkhorn_log(weight, weight, cost, EPSILON * cost.mean(), stopThr=0,
                                    numItermax=ARGUMENTS.sinkhorn_iterations, warn=False)

    return {"POT sinkhorn_log (forward)": median_seconds(solve) * source.shape[0] / 12}


def ott_rows():
    try:
        import jax
        import jax.numpy as jnp
        from ott.geometry import geometry
        from ott.problems.linear import linear_problem
        from ott.solvers.linear import sinkhorn
    except ImportError:
        return {"OTT-JAX": "not installed"}
    solver = sinkhorn.Sinkhorn(threshold=-1, min_iterations=ARGUMENTS.sinkhorn_iterations,
                               max_iterations=ARGUMENTS.sinkhorn_iterations,
                               inner_iterations=ARGUMENTS.sinkhorn_iterations, lse_mode=True)

    def one(source, target):
        cost = (source[:, None] - target[None, :]) ** 2
        geom = geometry.Geometry(cost_matrix=cost, epsilon=EPSILON * cost.mean())
        plan = jax.lax.stop_gradient(solver(linear_problem.LinearProblem(geom)).matrix)
        return (plan * (source[:, None] - target[None, :]) ** 2).sum()

    run = jax.jit(jax.value_and_grad(lambda s, t: jax.vmap(one)(s, t).sum(), argnums=(0, 1)))
    source, target = (jnp.asarray(m.detach().numpy()) for m in coupling_samples(torch.float32))
    return {"OTT-JAX jit": median_seconds(lambda: jax.block_until_ready(run(source, target)))}


CASES = {
    "typical_samples": lambda: torch_rows(typical_samples, embeddings),
    "coupling": lambda: {**torch_rows(couplings, coupling_samples), **pot_rows(), **ott_rows()},
    "horizontal_loss": lambda: torch_rows(horizontal, embeddings),
}


def our_seconds(names):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.json")
        command = [ARGUMENTS.program, "bench", "--out", path, "--filter", ",".join(names),
                   "--precision", "float", "--device", "cpu",
                   "--threads", str(ARGUMENTS.threads), "--seconds", str(ARGUMENTS.seconds),
                   "--n", str(ARGUMENTS.n), "--d", str(ARGUMENTS.d), "--k", str(ARGUMENTS.k),
                   "--typical-iterations", str(ARGUMENTS.typical_iterations),
                   "--sinkhorn-iterations", str(ARGUMENTS.sinkhorn_iterations),
                   "--slim-iterations", str(ARGUMENTS.slim_iterations)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(path) as file:
            return {c["name"]: c["seconds"]["median"] for c in json.load(file)["cases"]}


def main():
    names = [n for n in CASES if not ARGUMENTS.only or n in ARGUMENTS.only.split(",")]
    ours = our_seconds(names)
    figures = {"torch": torch.__version__, "threads": ARGUMENTS.threads, "cases": {}}
    print("N %d, D %d, K %d; typical %d, sinkhorn %d, SLIM %d rounds; float, forward and backward; "
          "%d threads; torch %s" % (ARGUMENTS.n, ARGUMENTS.d, ARGUMENTS.k,
                                    ARGUMENTS.typical_iterations, ARGUMENTS.sinkhorn_iterations,
                                    ARGUMENTS.slim_iterations, ARGUMENTS.threads,
                                    torch.__version__))
    print("%-18s %-28s %12s %10s" % ("what", "who", "ms", "ratio"))
    for name in names:
        print("%-18s %-28s %12.2f %10s" % (name, "cfaa_gpu", 1e3 * ours[name], "1.0"), flush=True)
        figures["cases"][name] = {"cfaa_gpu": ours[name]}
        for who, seconds in CASES[name]().items():
            figures["cases"][name][who] = seconds
            if isinstance(seconds, str):
                print("%-18s %-28s %12s" % ("", who, seconds))
            else:
                print("%-18s %-28s %12.2f %9.1fx" % ("", who, 1e3 * seconds, seconds / ours[name]),
                      flush=True)
    if ARGUMENTS.json:
        with open(ARGUMENTS.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
