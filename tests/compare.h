#pragma once

// The one comparator of the tests. It is written so that NaN fails: !(error <= tolerance).

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace cfaa::test {

// |a - b| <= tolerance * max(|a|, |b|), or both exactly equal (so equal infinities pass).
template <class A, class B>
testing::AssertionResult close(A a, B b, double tolerance);

// The same for arrays, by norms: |a - b|_2 <= tolerance * max(|a|_2, |b|_2), and equal sizes.
template <class A, class B>
testing::AssertionResult close(const std::vector<A>& a, const std::vector<B>& b, double tolerance);

// Element by element: |a_i - b_i| <= tolerance * max(|a_i|, |b_i|, floor).
template <class A, class B>
testing::AssertionResult close_each(const std::vector<A>& a, const std::vector<B>& b,
                                    double tolerance, double floor);

}  // namespace cfaa::test
