#pragma once

// als_half_sweep: one half of a sweep of implicit alternating least squares (iALS, Rendle et al.,
// RecSys '22). With H (n, d) fixed, I_u the columns of row u and
//
//   c_u = lambda (|I_u| + alpha n)^nu
//   w_u = (sum_{i in I_u} h_i h_i' + alpha H'H + c_u I)^-1 sum_{i in I_u} h_i
//
// is the exact minimiser over W of
//
//   sum_u [ sum_{i in I_u} (1 - <w_u, h_i>)^2 + alpha ||H w_u||^2 + c_u ||w_u||^2 ].
//
// H is first turned into the basis of H'H's eigenvectors, which changes no product <w_u, h_i> once
// W is solved for: alpha H'H + c_u I is then diagonal, and a row of few entries costs |I_u|^2 d
// instead of d^3 / 3 (Woodbury). The d x d eigenproblem is solved on the host on every device.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"
#include "host/ops/sparse_product.h"

namespace cfaa {

struct AlsOptions {
  double alpha = 0.1;
  double lambda = 0.1;
  double nu = 1;
};

// rows (m, n): the entries of its rows, whose values are not read; h (n, d) contiguous, turned; w
// (m, d) contiguous, written, 0 for a row without entries. Waits for the device. Returns (d) the
// diagonal of alpha H'H in the new basis.
template <class T>
std::vector<T> als_half_sweep(Context& context, const SparseView& rows, const AlsOptions& options,
                              MatrixView<T> h, MatrixView<T> w);

// Rows that come later: w (m, d) by the h that a half-sweep turned and the diagonal that it
// returned. A row has the bits that the half-sweep would have given it.
template <class T>
void als_later_rows(Context& context, const SparseView& rows, const AlsOptions& options,
                    std::span<const T> diagonal, MatrixView<const T> h, MatrixView<T> w);

// Its parts. gram (d, d) = h'h:
CFAA_DEVICE_OP(template <class T>
               void als_gram(Context& context, MatrixView<const T> h, MatrixView<T> gram));

// h = h basis', basis (d, d) with an eigenvector a row:
CFAA_DEVICE_OP(template <class T>
               void als_turn(Context& context, MatrixView<const T> basis, MatrixView<T> h));

// w, with base (d) the diagonal of alpha h'h:
CFAA_DEVICE_OP(template <class T>
               void als_solve(Context& context, const SparseView& rows, const AlsOptions& options,
                              VectorView<const T> base, MatrixView<const T> h, MatrixView<T> w));

}  // namespace cfaa
