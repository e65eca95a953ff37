"""The losses on arrays: golden cases, memory as it lies, and what is refused."""

import ctypes
import os
import threading
import unittest

import numpy as np

import cfaa
from golden import REPOSITORY, GoldenCase, distance, fixture_folder, resident

CASES = [name for name in ("tiny", "small", "collapse", "paper") if fixture_folder(name)]


def two_sets(rows=40, columns=6, dtype=np.float32):
    random = np.random.default_rng(0)
    zs = random.normal(size=(rows, columns))
    zt = random.normal(size=(rows + 9, columns)) * 1.5 + 0.3
    return zs.astype(dtype), zt.astype(dtype)


class Golden(unittest.TestCase):
    def check(self, loss, expected, gradients, **options):
        for name in CASES:
            for dtype, loss_bound, bound in ((np.float64, 1e-9, 1e-9), (np.float32, 2e-4, 2e-3)):
                with self.subTest(case=name, dtype=dtype.__name__):
                    case = GoldenCase(name, dtype)
                    if expected not in case.expected:
                        continue

                    value, (gs, gt) = loss(case.zs, case.zt, **{**case.options, **options})

                    self.assertLessEqual(distance(value, case.expected[expected]), loss_bound)
                    bound = max(bound, 1e-7 if name == "paper" else 0)
                    self.assertEqual((gs.dtype, gs.shape), (dtype, case.zs.shape))
                    self.assertLessEqual(distance(gs, case.array(f"{gradients}_grad_zs")), bound)
                    self.assertLessEqual(distance(gt, case.array(f"{gradients}_grad_zt")), bound)

    def test_the_vertical_loss_and_its_gradients_are_those_of_the_golden_cases(self):
        self.check(cfaa.vertical_loss, "vertical_sinkhorn", "vertical_sinkhorn")

    def test_so_are_those_of_the_exact_coupling(self):
        self.check(cfaa.vertical_loss, "vertical_exact", "vertical_exact", ot_solver="exact")

    def test_the_horizontal_loss_and_its_gradients_are_those_of_the_golden_cases(self):
        self.check(cfaa.horizontal_loss, "horizontal_exact", "horizontal")

    def test_so_are_those_of_the_step_that_the_paper_prints(self):
        self.check(cfaa.horizontal_loss, "horizontal_paper", "horizontal_paper", slim_step="paper")

    def test_typical_samples_are_those_of_the_golden_cases(self):
        for name in CASES:
            case = GoldenCase(name, np.float64)

            typical = cfaa.typical_samples(case.zs, case.zt, **case.options)

            bound = 1e-7 if name == "paper" else 1e-9
            self.assertLessEqual(distance(typical.source.T, case.array("typical_s")), bound)
            self.assertLessEqual(distance(typical.target.T, case.array("typical_t")), bound)


class Couplings(unittest.TestCase):
    def test_plans_have_uniform_marginals_and_the_cost_that_is_told(self):
        random = np.random.default_rng(1)
        source, target = random.normal(size=(2, 3, 8))

        result = cfaa.coupling(source, target, sinkhorn_iterations=1000)

        self.assertEqual(result.plan.shape, (3, 8, 8))
        np.testing.assert_allclose(result.plan.sum(1), 1 / 8, atol=1e-6)
        np.testing.assert_allclose(result.plan.sum(2), 1 / 8, atol=1e-6)
        cost = (source[:, :, None] - target[:, None, :]) ** 2
        np.testing.assert_allclose(result.loss, (result.plan * cost).sum((1, 2)))
        self.assertTrue(result.converged.all())

    def test_the_exact_plan_pairs_the_sorted_samples(self):
        plan = cfaa.coupling(np.array([[3.0, 1.0]]), np.array([[4.0, 9.0]]), ot_solver="exact").plan

        np.testing.assert_array_equal(plan, [[[0, 0.5], [0.5, 0]]])

    def test_different_shapes_are_refused(self):
        with self.assertRaisesRegex(cfaa.Error, "source is 1 x 2 and target 1 x 3"):
            cfaa.coupling(np.zeros((1, 2)), np.zeros((1, 3)))


class Memory(unittest.TestCase):
    def test_padded_rows_and_views_are_read_where_they_lie(self):
        zs, zt = two_sets()
        wide = np.full((80, 20), np.nan, np.float32)
        wide[::2, 3:9] = zs
        expected = cfaa.vertical_loss(zs, zt)

        value, (gs, _) = cfaa.vertical_loss(wide[::2, 3:9], zt)

        self.assertEqual(value, expected[0])
        np.testing.assert_array_equal(gs, expected[1][0])

    def test_arrays_that_may_only_be_read_are_read(self):
        zs, zt = two_sets()
        zs.flags.writeable = False

        self.assertGreater(cfaa.vertical_loss(zs, zt, gradients=False), 0)

    def test_any_object_with_dlpack_is_read(self):
        class Array:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        zs, zt = two_sets()

        self.assertEqual(cfaa.vertical_loss(Array(zs), Array(zt), gradients=False),
                         cfaa.vertical_loss(zs, zt, gradients=False))

    def test_memory_stays_flat_over_a_thousand_calls(self):
        zs, zt = two_sets(256, 32)
        for _ in range(50):
            cfaa.vertical_loss(zs, zt, ot_solver="exact", k=8)
        before = resident()

        for _ in range(1000):
            cfaa.vertical_loss(zs, zt, ot_solver="exact", k=8)

        self.assertLess(resident() - before, 2**22)  # gradients alone would be 70 MB


class Refused(unittest.TestCase):
    def refuses(self, words, zs, zt=None, **options):
        other = two_sets(dtype=getattr(zs, "dtype", np.float32))[1] if zt is None else zt
        for loss in (cfaa.vertical_loss, cfaa.horizontal_loss):
            with self.assertRaisesRegex(cfaa.Error, words):
                loss(zs, other, **options)

    def test_what_is_no_array(self):
        self.refuses("zs: is a list; give an array", [[1.0, 2.0]])

    def test_other_types(self):
        for dtype in (np.float16, np.int32, np.complex64):
            self.refuses("must be of float32 or float64", np.ones((4, 6), dtype), two_sets()[1])

    def test_two_types(self):
        self.refuses("zs is of float32 and zt of float64", two_sets()[0],
                     two_sets(dtype=np.float64)[1])

    def test_other_shapes(self):
        self.refuses("zs: has 1 dimension; give a matrix", np.ones(6, np.float32))
        self.refuses("5", np.ones((4, 5), np.float32))  # the other has 6 columns

    def test_fortran_order(self):
        self.refuses("not adjacent.*ascontiguousarray", np.asfortranarray(two_sets()[0]))

    def test_rows_that_run_backwards_or_lie_over_each_other(self):
        zs = two_sets()[0]
        self.refuses("backwards or lie over each other", zs[::-1])
        self.refuses("backwards or lie over each other", np.broadcast_to(zs[0], zs.shape))

    def test_no_rows(self):
        self.refuses("empty", two_sets()[0][:0])

    def test_nan_and_infinity(self):
        for value in (np.nan, np.inf):
            zs, zt = two_sets()
            zs[3, 2] = value
            self.refuses("became NaN or infinite|not positive definite", zs, zt)
        self.assertGreater(cfaa.vertical_loss(*two_sets(), gradients=False), 0)

    def test_other_devices(self):
        class Elsewhere:
            """An array that says that it lies on another device."""

            def __init__(self, array, kind):
                self.array, self.kind = array, kind

            def __dlpack_device__(self):
                return self.kind, 0

            def __dlpack__(self, **_):
                capsule = self.array.__dlpack__()
                pointer = ctypes.pythonapi.PyCapsule_GetPointer
                pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object,
                                                                      ctypes.c_char_p]
                # struct DLTensor { void* data; struct { int32_t kind, number; } device; ...
                place = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
                ctypes.c_int32.from_address(place).value = self.kind
                return capsule

        cuda, rocm = 2, 10
        zs, zt = two_sets()
        self.refuses("zs: lies on a device that is neither", Elsewhere(zs, rocm), zt)
        self.refuses("zs lies on cuda:0 and zt on cpu; move one", Elsewhere(zs, cuda), zt)
        self.refuses("built without CUDA|no GPU", Elsewhere(zs, cuda), Elsewhere(zt, cuda))

    def test_unknown_options_with_the_nearest(self):
        self.refuses("'epsilom' is not a key.*did you mean 'epsilon'", two_sets()[0], epsilom=1)

    def test_values_out_of_range(self):
        self.refuses("epsilon must be", two_sets()[0], epsilon=-1)
        self.refuses("k must be", two_sets()[0], k=[3])


class Process(unittest.TestCase):
    def test_threads_that_call_at_once_get_what_one_gets(self):
        zs, zt = two_sets()
        expected = cfaa.vertical_loss(zs, zt), cfaa.horizontal_loss(zs, zt)
        found = [None] * 4

        def call(number):
            for _ in range(5):
                found[number] = cfaa.vertical_loss(zs, zt), cfaa.horizontal_loss(zs, zt)

        threads = [threading.Thread(target=call, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        for results in found:
            for (value, gradients), (same, as_these) in zip(results, expected):
                self.assertEqual(value, same)
                np.testing.assert_array_equal(gradients[0], as_these[0])
                np.testing.assert_array_equal(gradients[1], as_these[1])

    def test_results_have_the_same_bits_on_any_number_of_threads(self):
        zs, zt = two_sets()
        self.addCleanup(cfaa.set_threads, 0)
        cfaa.set_threads(1)
        value, (gs, _) = cfaa.horizontal_loss(zs, zt)

        cfaa.set_threads(3)
        again, (same, _) = cfaa.horizontal_loss(zs, zt)

        self.assertEqual(value, again)
        np.testing.assert_array_equal(gs, same)
        with self.assertRaisesRegex(cfaa.Error, "-1 threads"):
            cfaa.set_threads(-1)

    def test_a_forked_child_computes_too(self):
        zs, zt = two_sets()
        expected = cfaa.vertical_loss(zs, zt, gradients=False)

        child = os.fork()
        if child == 0:
            os._exit(0 if cfaa.vertical_loss(zs, zt, gradients=False) == expected else 1)

        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_version_is_the_programs(self):
        text = (REPOSITORY / "CMakeLists.txt").read_text()

        self.assertIn(f"project(cfaa_gpu VERSION {cfaa.__version__} ", text)


if __name__ == "__main__":
    unittest.main()
