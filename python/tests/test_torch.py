"""The losses as operators of PyTorch, where that is installed."""

import threading
import unittest

import numpy as np

import cfaa
from golden import GoldenCase, distance, resident

try:
    import torch

    import cfaa.torch
except ImportError:
    torch = None

LOSSES = ("vertical_loss", "horizontal_loss")


def two_sets(rows=24, columns=5, dtype="float64"):
    generator = torch.Generator().manual_seed(0)
    zs = torch.randn(rows, columns, generator=generator, dtype=getattr(torch, dtype))
    zt = 1.5 * torch.randn(rows + 5, columns, generator=generator, dtype=zs.dtype) + 0.3
    return zs.requires_grad_(), zt.requires_grad_()


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Operators(unittest.TestCase):
    def test_values_and_gradients_are_those_of_the_golden_cases(self):
        for loss, prefix, expected in (("vertical_loss", "vertical_sinkhorn", "vertical_sinkhorn"),
                                       ("horizontal_loss", "horizontal", "horizontal_exact")):
            case = GoldenCase("small", np.float64)
            zs, zt = (torch.tensor(z, requires_grad=True) for z in (case.zs, case.zt))

            value = getattr(cfaa.torch, loss)(zs, zt, **case.options)
            (3 * value).backward()

            self.assertLessEqual(distance(value.item(), case.expected[expected]), 1e-9)
            self.assertLessEqual(distance(zs.grad / 3, case.array(f"{prefix}_grad_zs")), 1e-9)
            self.assertLessEqual(distance(zt.grad / 3, case.array(f"{prefix}_grad_zt")), 1e-9)

    def test_they_are_what_numpy_gets(self):
        for loss in LOSSES:
            for dtype in ("float32", "float64"):
                zs, zt = two_sets(dtype=dtype)

                value = getattr(cfaa.torch, loss)(zs, zt)
                value.backward()

                expected, (gs, _) = getattr(cfaa, loss)(zs.detach().numpy(), zt.detach().numpy())
                self.assertEqual(value.item(), expected)
                self.assertEqual(value.dtype, zs.dtype)
                np.testing.assert_array_equal(zs.grad.numpy(), gs)

    def test_tensors_go_into_the_functions_for_arrays_and_tensors_come_out(self):
        zs, zt = (z.detach() for z in two_sets())

        _, (gs, gt) = cfaa.vertical_loss(zs, zt)

        self.assertIsInstance(gs, torch.Tensor)
        self.assertEqual(gt.shape, zt.shape)

    def test_opcheck_finds_nothing(self):
        for loss in LOSSES:
            zs, zt = two_sets()
            operator = getattr(torch.ops.cfaa, loss).default
            torch.library.opcheck(operator, (zs, zt, "{}", True))
            torch.library.opcheck(operator, (zs.detach(), zt.detach(), "{}", False))

    def test_gradients_are_those_of_the_loss_with_the_same_quantities_held_fixed(self):
        for loss, options in (("vertical", {}), ("vertical", {"ot_solver": "exact"}),
                              ("vertical", {"ot_scale": "paper"}), ("horizontal", {}),
                              ("horizontal", {"slim_step": "paper"}),
                              ("horizontal", {"nu_scale": "relative"})):
            with self.subTest(loss=loss, **options):
                zs, zt = two_sets()
                state = getattr(cfaa.torch, f"{loss}_state")(zs, zt, **options)
                frozen = getattr(cfaa.torch, f"frozen_{loss}_loss")
                ours = getattr(cfaa.torch, f"{loss}_loss")

                class Frozen(torch.autograd.Function):
                    """The frozen loss with our gradient, which gradcheck compares with
                    differences."""

                    @staticmethod
                    def forward(context, zs, zt):
                        context.save_for_backward(zs, zt)
                        return frozen(zs, zt, state)

                    @staticmethod
                    def backward(context, grad):
                        with torch.enable_grad():
                            pair = [z.detach().requires_grad_() for z in context.saved_tensors]
                            value = ours(*pair, **options)
                            gradients = torch.autograd.grad(value, pair)
                        return tuple(grad * gradient for gradient in gradients)

                self.assertAlmostEqual(ours(zs, zt, **options).item(),
                                       frozen(zs, zt, state).item(), places=9)
                self.assertTrue(torch.autograd.gradcheck(Frozen.apply, (zs, zt)))
                by_autograd = torch.autograd.grad(frozen(zs, zt, state), (zs, zt))
                by_hand = torch.autograd.grad(ours(zs, zt, **options), (zs, zt))
                for a, b in zip(by_autograd, by_hand):
                    self.assertLessEqual(distance(a, b), 1e-8)

    def test_second_derivatives_are_refused(self):
        zs, zt = two_sets()
        value = cfaa.torch.vertical_loss(zs, zt)
        gradient, = torch.autograd.grad(value, zs, create_graph=True)

        with self.assertRaisesRegex(cfaa.Error, "no second derivatives"):
            gradient.square().sum().backward()

    def test_a_compiled_model_with_both_losses_learns_what_the_eager_one_learns(self):
        def step(encoder, source, target):
            zs, zt = encoder(source), encoder(target)
            return (zs.square().mean() + cfaa.torch.vertical_loss(zs, zt, k=4)
                    + 0.1 * cfaa.torch.horizontal_loss(zs, zt))

        source, target = (z.detach() for z in two_sets())
        gradients = []
        for backend in (None, "aot_eager", "inductor"):
            call = step if backend is None else torch.compile(step, fullgraph=True,
                                                              backend=backend)
            torch.manual_seed(1)
            encoder = torch.nn.Linear(5, 6, dtype=torch.float64)
            call(encoder, source, target).backward()
            gradients.append(encoder.weight.grad)

        self.assertLessEqual(distance(gradients[0], gradients[1]), 1e-12)
        self.assertLessEqual(distance(gradients[0], gradients[2]), 1e-12)

    def test_memory_stays_flat_over_a_thousand_steps(self):
        zs, zt = two_sets(256, 32, "float32")

        def steps(count):
            for _ in range(count):
                zs.grad = zt.grad = None
                cfaa.torch.vertical_loss(zs, zt, ot_solver="exact", k=8).backward()

        steps(50)
        before = resident()

        steps(1000)

        self.assertLess(resident() - before, 2**22)  # gradients alone would be 70 MB

    def test_nan_raises_at_once_on_the_cpu(self):
        for loss in LOSSES:
            zs, zt = (z.detach() for z in two_sets())
            zs[3, 2] = float("nan")
            with self.assertRaisesRegex(cfaa.Error, "NaN or infinite|not positive definite"):
                getattr(cfaa.torch, loss)(zs, zt)
        cfaa.torch.check("cpu")

    def test_padded_rows_are_read_and_other_strides_refused(self):
        zs, zt = (z.detach() for z in two_sets())
        wide = torch.zeros(zs.shape[0], 9, dtype=zs.dtype)
        wide[:, 2:7] = zs

        self.assertEqual(cfaa.torch.vertical_loss(wide[:, 2:7], zt),
                         cfaa.torch.vertical_loss(zs, zt))
        with self.assertRaisesRegex(cfaa.Error, "not adjacent"):
            cfaa.torch.vertical_loss(zs.T.contiguous().T, zt)
        with self.assertRaisesRegex(cfaa.Error, "float32 or float64"):
            cfaa.torch.vertical_loss(zs.half(), zt.half())

    def test_only_one_side_may_want_a_gradient(self):
        zs, zt = two_sets()
        cfaa.torch.vertical_loss(zs, zt.detach()).backward()

        self.assertIsNotNone(zs.grad)
        self.assertIsNone(zt.grad)
        with torch.no_grad():
            self.assertFalse(cfaa.torch.vertical_loss(zs, zt).requires_grad)

    def test_threads_that_call_at_once_get_what_one_gets(self):
        zs, zt = (z.detach() for z in two_sets())
        expected = cfaa.torch.horizontal_loss(zs, zt)
        found = []
        threads = [threading.Thread(
            target=lambda: found.append(cfaa.torch.horizontal_loss(zs, zt))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        self.assertEqual(found, [expected] * 4)


if __name__ == "__main__":
    unittest.main()
