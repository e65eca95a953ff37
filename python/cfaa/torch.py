"""The alignment losses as differentiable operators of PyTorch.

    loss = recommendation_loss + 0.5 * cfaa.torch.vertical_loss(zs, zt, k=128)
    loss.backward()

They are `torch.library` operators with fake kernels: `torch.compile` takes them into its graphs.
Tensors are of float32 or float64, on the CPU or on an NVIDIA GPU (in a build with CUDA), and rows
may be padded. What the losses hold fixed (assignments, plans, penalties) has no derivative, so that
second derivatives would be wrong; asking for one raises cfaa.Error.

On a GPU a loss is queued behind what torch's current stream holds, and what follows on that stream
behind the loss: the host does not wait. A matrix that cannot be factored, or a NaN, is then told by
`check`, or by one of the next eight calls, as CUDA tells its own errors.
"""

import json
from typing import Any

import torch

from cfaa import _native, alignment
from cfaa._native import Error

_LOSSES = {"vertical_loss": _native.vertical_loss_into,
           "horizontal_loss": _native.horizontal_loss_into}


def _outputs(zs, zt, gradients, make):
    """What a loss writes: its value, and the gradients or nothing."""
    shapes = (zs.shape, zt.shape) if gradients else ((0,), (0,))
    return zs.new_empty(()), make(shapes[0]), make(shapes[1])


# Options cross the border of an operator as text.
def _compute(name, zs, zt, options, gradients):
    native = alignment.native_options(name, json.loads(options))
    value, gs, gt = outputs = _outputs(zs, zt, gradients, zs.new_zeros)
    arguments = (zs.detach(), zt.detach(), native, value.view(1, 1), gs if gradients else None,
                 gt if gradients else None)
    if not zs.is_cuda:
        _LOSSES[name](*arguments, 0)
        return outputs
    with torch.cuda.device(zs.device):
        _LOSSES[name](*arguments, torch.cuda.current_stream().cuda_stream)
    return outputs


def _register(name):
    # What the loss queues is not all of a kind that a CUDA graph can capture.
    tags = [tag for tag in (getattr(torch.Tag, "cudagraph_unsafe", None),) if tag is not None]

    @torch.library.custom_op(f"cfaa::{name}", mutates_args=(), **({"tags": tags} if tags else {}))
    def loss(zs: torch.Tensor, zt: torch.Tensor, options: str,
             gradients: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return _compute(name, zs, zt, options, gradients)

    @loss.register_fake
    def _(zs, zt, options, gradients):
        return _outputs(zs, zt, gradients, zs.new_empty)

    def setup_context(ctx, inputs, output):
        _, gs, gt = output
        ctx.save_for_backward(gs, gt, *inputs[:2])
        ctx.mark_non_differentiable(gs, gt)
        ctx.set_materialize_grads(False)

    def backward(ctx, grad, *_):
        if grad is None:
            return None, None, None, None
        return *_scaled(grad, *ctx.saved_tensors), None, None

    loss.register_autograd(backward, setup_context=setup_context)
    return loss


# An operator too, of the sets as well, so that who differentiates gradients is told that they
# cannot.
@torch.library.custom_op("cfaa::scaled_gradients", mutates_args=())
def _scaled(grad: torch.Tensor, gs: torch.Tensor, gt: torch.Tensor, zs: torch.Tensor,
            zt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return gs * grad, gt * grad


@_scaled.register_fake
def _(grad, gs, gt, zs, zt):
    return torch.empty_like(gs), torch.empty_like(gt)


def _refuse(ctx, *grads):
    raise Error("the alignment losses have no second derivatives: their gradients hold "
                "assignments, plans and penalties fixed; leave create_graph out, or detach the "
                "gradient")


_scaled.register_autograd(_refuse)
_vertical, _horizontal = _register("vertical_loss"), _register("horizontal_loss")


@torch.compiler.assume_constant_result
def _text_of(options):
    return json.dumps(options, sort_keys=True)


def _loss(operator, zs, zt, options):
    wanted = torch.is_grad_enabled() and (zs.requires_grad or zt.requires_grad)
    return operator(zs, zt, _text_of(options), wanted)[0]


def vertical_loss(zs: torch.Tensor, zt: torch.Tensor, **options: Any) -> torch.Tensor:
    """How differently the attributes of two embedding sets are distributed; see cfaa.vertical_loss.

    zs, zt    (N_S, D) and (N_T, D)

    Returns a scalar tensor of their type, differentiable with respect to both.
    """
    return _loss(_vertical, zs, zt, options)


def horizontal_loss(zs: torch.Tensor, zt: torch.Tensor, **options: Any) -> torch.Tensor:
    """How differently the attributes of two sets hang together; see cfaa.horizontal_loss.

    zs, zt    (N_S, D) and (N_T, D), D >= 2

    Returns a scalar tensor of their type, differentiable with respect to both.
    """
    return _loss(_horizontal, zs, zt, options)


def check(device: torch.device | str = "cuda") -> None:
    """Waits for the losses that this thread has queued on a GPU; raises what one of them met."""
    device = torch.device(device)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        with torch.cuda.device(index):
            _native.check_faults(f"cuda:{index}")


def vertical_state(zs: torch.Tensor, zt: torch.Tensor, **options: Any) -> dict[str, Any]:
    """What the vertical loss holds fixed in its gradients, for `frozen_vertical_loss`.

    Returns a dict: `assignment`, a pair of (N, D, K), rows summing to one over K, and `plan`
    (D, K, K), already divided by K^2 where ot_scale is "paper".
    """
    state = _native.vertical_state(zs.detach(), zt.detach(),
                                   alignment.native_options("vertical_state", options))
    state = {key: torch.from_dlpack(value) for key, value in state.items()}
    assignments = []
    for side, z in enumerate((zs.detach(), zt.detach())):
        spread = torch.where(state["spread"] == 0, 1, state["spread"])  # (1, D)
        units = (z - state["centre"][side]) / spread  # (N, D)
        distance = (units[:, :, None] - state["previous"][side]) ** 2  # (N, D, K)
        assignments.append(torch.softmax(-distance * state["bandwidth"][0][:, None], dim=2))
    scale = state["plan"].shape[-1] ** 2 if options.get("ot_scale") == "paper" else 1
    return {"assignment": tuple(assignments), "plan": state["plan"] / scale}


def frozen_vertical_loss(zs: torch.Tensor, zt: torch.Tensor,
                         state: dict[str, Any]) -> torch.Tensor:
    """The vertical loss by plain operations with `state` held fixed: what a gradient check differs.

    At the point where `state` was taken, its value and gradient are those of vertical_loss.
    """
    samples = []
    for z, assignment in zip((zs, zt), state["assignment"]):
        weight = assignment.sum(0)  # (D, K)
        samples.append(torch.einsum("ndk,nd->dk", assignment, z) / weight)
    cost = (samples[0][:, :, None] - samples[1][:, None, :]) ** 2  # (D, K, K)
    return (state["plan"] * cost).sum() / zs.shape[1]


def horizontal_state(zs: torch.Tensor, zt: torch.Tensor, **options: Any) -> dict[str, Any]:
    """What the horizontal loss holds fixed in its gradients, for `frozen_horizontal_loss`.

    Returns a dict: `xi` (2, D, D), Phi + Phi' of the last round, `nu` (2), and the settings.
    """
    state = _native.horizontal_state(zs.detach(), zt.detach(),
                                     alignment.native_options("horizontal_state", options))
    state = {key: torch.from_dlpack(value) for key, value in state.items()}
    size = zs.shape[1]
    xi = state.get("xi", 2 * torch.eye(size, dtype=torch.float64).expand(2, size, size))
    return {"xi": xi, "nu": state["nu"], "step": options.get("slim_step", "exact"),
            "graph_floor": options.get("graph_floor", 1e-5)}


def frozen_horizontal_loss(zs: torch.Tensor, zt: torch.Tensor,
                           state: dict[str, Any]) -> torch.Tensor:
    """The horizontal loss by plain operations in float64 with `state` held fixed.

    At the point where `state` was taken, its value and gradient are those of horizontal_loss.
    """
    factors, trace = [], 0
    size = zs.shape[1]
    eye = torch.eye(size, dtype=torch.float64)
    for z, xi, nu in zip((zs.double(), zt.double()), state["xi"], state["nu"]):
        theta = torch.linalg.inv(z.T @ z + nu * xi)
        if state["step"] == "paper":
            b = -theta / theta.diagonal()
        else:
            gamma = (1 - nu * (theta @ xi).diagonal()) / theta.diagonal()
            b = eye - nu * theta @ xi - theta * gamma
        edges = (b.abs() + b.abs().T) / 2 + state["graph_floor"]
        edges = edges * (1 - eye)
        laplacian = torch.diag(edges.sum(1)) - edges
        covariance = torch.linalg.inv(laplacian + 1 / size)
        factors.append(torch.linalg.cholesky(covariance))
        trace = trace + covariance.trace()
    return trace - 2 * torch.linalg.svdvals(factors[0].T @ factors[1]).sum()
