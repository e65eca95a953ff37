"""The two alignment losses on arrays of NumPy, or of anything that has `__dlpack__`.

A set is one domain's users (or items), a row each; the columns are attributes and mean the same in
both domains. Arrays are of float32 or float64, in the memory of a CPU or an NVIDIA GPU, and both of
a pair alike. They are computed with where they lie: rows may be padded, and nothing is ever copied
or converted silently.

Options are the keys of the configuration's `alignment` section (docs/configuration.md).
"""

import functools
import json
import sys
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, overload

from cfaa import _native


class Array(Protocol):
    """What NumPy's arrays, PyTorch's tensors and many others are."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


AnArray = TypeVar("AnArray", bound=Array)


@functools.lru_cache(maxsize=256)
def _kept_options(function: str, items: tuple[tuple[str, Any], ...]) -> _native.AlignmentOptions:
    return _native.AlignmentOptions(json.dumps(dict(items)), function)


def native_options(function: str, options: dict[str, Any]) -> _native.AlignmentOptions:
    """The C++ struct of keyword arguments; `function` names the caller in messages."""
    try:
        return _kept_options(function, tuple(options.items()))
    except TypeError:  # a value that cannot be a key, such as a list
        return _native.AlignmentOptions(json.dumps(options, default=repr), function)


def _like(array: Any, results: Any) -> Any:
    """Results as the library of `array` has them."""
    library = type(array).__module__.partition(".")[0]
    if library == "numpy":
        return results
    from_dlpack = getattr(sys.modules.get(library), "from_dlpack", None)
    return results if from_dlpack is None else tuple(from_dlpack(result) for result in results)


def _loss(name: str, zs: Any, zt: Any, gradients: bool, options: dict[str, Any]) -> Any:
    result = getattr(_native, name)(zs, zt, native_options(name, options), gradients)
    if not gradients:
        return result
    value, pair = result
    return value, _like(zs, pair)


@overload
def vertical_loss(zs: AnArray, zt: AnArray, *, gradients: Literal[True] = True,
                  **options: Any) -> tuple[float, tuple[AnArray, AnArray]]: ...
@overload
def vertical_loss(zs: AnArray, zt: AnArray, *, gradients: Literal[False],
                  **options: Any) -> float: ...
def vertical_loss(zs: Any, zt: Any, *, gradients: bool = True, **options: Any) -> Any:
    """How differently the attributes are distributed in two embedding sets, and the gradients.

    Per attribute q, K typical samples stand for the column of each set, and

        L_O = (1/D) sum_q <plan_q, C_q>,    C_ij = (m^S_i - m^T_j)^2

    is the transport distance between them. The soft assignment, the plans and the bandwidths are
    held fixed in the gradients.

    zs, zt       (N_S, D) and (N_T, D)
    gradients    False: returns the value alone
    options      k (0: half the smaller set), alpha, alpha_scale, typical_iterations, ot_solver,
                 epsilon, sinkhorn_iterations, sinkhorn_tolerance, ot_scale

    Returns value, (dL/dzs, dL/dzt): a float and two arrays shaped like the sets.
    """
    return _loss("vertical_loss", zs, zt, gradients, options)


@overload
def horizontal_loss(zs: AnArray, zt: AnArray, *, gradients: Literal[True] = True,
                    **options: Any) -> tuple[float, tuple[AnArray, AnArray]]: ...
@overload
def horizontal_loss(zs: AnArray, zt: AnArray, *, gradients: Literal[False],
                    **options: Any) -> float: ...
def horizontal_loss(zs: Any, zt: Any, *, gradients: bool = True, **options: Any) -> Any:
    """How differently the attributes hang together in two embedding sets, and the gradients.

    SLIM writes each attribute as a sparse mix of the others, min_B 1/2 |Z - ZB|^2 + nu Tr(B' Phi B)
    with diag(B) = 0; of |B| comes a graph of the attributes with Laplacian L, and

        L_A = Tr Sigma_S + Tr Sigma_T - 2 Tr (Sigma_S^(1/2) Sigma_T Sigma_S^(1/2))^(1/2)

    is the Wasserstein distance of the Gaussians with covariances Sigma = L^+. Phi is held fixed in
    the gradients.

    zs, zt       (N_S, D) and (N_T, D), D >= 2
    gradients    False: returns the value alone
    options      nu, nu_scale, delta, slim_iterations, slim_tolerance, slim_step, graph_floor

    Returns value, (dL/dzs, dL/dzt): a float and two arrays shaped like the sets.
    """
    return _loss("horizontal_loss", zs, zt, gradients, options)


class TypicalSamples(NamedTuple, Generic[AnArray]):
    """Points that stand for the values of each attribute, and the spread of both."""

    source: AnArray  # (D, K), ascending in K
    target: AnArray  # (D, K)
    column_std: AnArray  # (2, D) of the columns of zs, then of zt
    sample_std: AnArray  # (2, D) of their typical samples: far smaller, they have collapsed


def typical_samples(zs: AnArray, zt: AnArray, **options: Any) -> TypicalSamples[AnArray]:
    """K points for each attribute of two sets that stand for its N values (options k, alpha, ...).

    Returns TypicalSamples: source and target (D, K), and the spread of columns and samples.
    """
    arrays = _native.typical_samples(zs, zt, native_options("typical_samples", options))
    return TypicalSamples(*_like(zs, arrays))


class Coupling(NamedTuple, Generic[AnArray]):
    """Transport plans, their costs, and how each problem ended."""

    plan: AnArray  # (Q, K, K), each sums to one
    loss: AnArray  # (Q) <plan, C>
    iterations: AnArray  # (Q) used
    marginal_error: AnArray  # (Q) L1 distance of the plan's marginals from uniform ones
    converged: AnArray  # (Q) 1 where the error is at most max(sinkhorn_tolerance, 1e-3)


def coupling(source: AnArray, target: AnArray, **options: Any) -> Coupling[AnArray]:
    """Q transport problems in one dimension between K samples each, with uniform weights.

        C_ij = (source_i - target_j)^2,  epsilon_q = epsilon * mean(C)

    source, target   (Q, K)
    options          ot_solver ("sinkhorn" or "exact"), epsilon, sinkhorn_iterations,
                     sinkhorn_tolerance, ot_scale

    Returns Coupling: the plans (Q, K, K), their costs, and how each ended.
    """
    arrays = _native.coupling(source, target, native_options("coupling", options))
    return Coupling(*_like(source, arrays))
