#include <fmt/format.h>

#include <cmath>

#include "bench/cases.h"
#include "bench/reference/layers.h"
#include "bench/validate.h"
#include "host/core/instantiate.h"
#include "host/core/tensor.h"
#include "host/cpu/inverse_sqrt.h"
#include "host/ops/grouped_linear.h"
#if CFAA_HAS_CUDA
#include "cuda/solver.h"
#endif

namespace cfaa::bench {
namespace {

using reference::normal;

// What a tower's first layer reads: an id row, a history row and a review vector.
constexpr int64_t kTowerInput = 64 + 64 + 768;
constexpr int64_t kTowers = 4;

template <class T>
struct Towers {
  Towers(Context& at, const reference::LayerExtents& extents) : context(at) {
    const auto [rows, in, out] = extents;
    for (uint64_t g = 0; g < kTowers; ++g) {
      host.push_back(reference::random_layer<T>(extents, 40 + 4 * g));
      // As large as a layer's weights are, so that outputs are of the size of inputs.
      for (T& weight : host.back().weight) weight /= static_cast<T>(std::sqrt(double(in)));
      x.emplace_back(context, std::array{rows, in}, host.back().x.data());
      w.emplace_back(context, std::array{out, in}, host.back().weight.data());
      b.emplace_back(context, std::array{out}, host.back().bias.data());
      y.emplace_back(context, std::array{rows, out});
      layers.push_back({x.back().view(), w.back().view(), b.back().view(), y.back().view()});
    }
  }

  Context& context;
  std::vector<reference::LinearInputs<T>> host;
  std::vector<Tensor<T, 2>> x, w, y;
  std::vector<Tensor<T, 1>> b;
  std::vector<LinearLayer<T>> layers;
};

// The last row of a layer's inputs, as a layer of its own.
template <class T>
reference::LinearInputs<T> last_row(const reference::LinearInputs<T>& in) {
  return {{1, in.e.k, in.e.n},
          {in.x.end() - in.e.k, in.x.end()},
          in.weight,
          in.bias,
          {in.dy.end() - in.e.n, in.dy.end()}};
}

template <class T>
Case linear_case(Context& context, const std::string& name, int64_t rows, int64_t in, int64_t out) {
  const auto towers = std::make_shared<Towers<T>>(context, reference::LayerExtents{rows, in, out});
  Case c;
  c.name = name;
  c.detail = fmt::format("{} towers, {} x {} by {}, bias and ReLU fused", kTowers, rows, in, out);
  c.work.flops = 2.0 * static_cast<double>(kTowers * rows * in * out);
  c.run = [towers] { grouped_linear<T>(towers->context, towers->layers, Activation::relu); };
  c.validate = [towers, run = c.run, out]() -> std::string {
    run();
    for (std::size_t g = 0; g < towers->host.size(); ++g) {
      const auto y = towers->y[g].to_host();
      const auto expected = reference::linear_layer(last_row(towers->host[g]), Activation::relu);
      const double error = relative_error({y.end() - out, y.end()}, expected.y);
      if (!(error <= (std::is_same_v<T, float> ? 1e-5 : 1e-12))) {
        return fmt::format("tower {} is off by {:.1e} from plain loops in double", g, error);
      }
    }
    return "";
  };
  return c;
}

template <class T>
Case copy_case(Context& context, int64_t elements) {
  struct Buffers {
    Tensor<T, 1> from, to;
  };
  const auto buffers = std::make_shared<Buffers>(
      Buffers{{context, {elements}, normal<T>(elements, 60, 0, 1).data()}, {context, {elements}}});
  Case c;
  c.name = "copy";
  c.detail = fmt::format("{} MiB, one stream or thread", elements * int64_t{sizeof(T)} >> 20);
  c.work.bytes = 2.0 * static_cast<double>(elements) * sizeof(T);
  c.run = [buffers, &context] {
    context.runtime().copy(buffers->to.view().data, buffers->from.view().data,
                           buffers->from.bytes());
  };
  c.validate = [buffers, run = c.run]() -> std::string {
    run();
    return buffers->to.to_host() == buffers->from.to_host() ? "" : "the copy differs";
  };
  return c;
}

// (S, D, D) symmetric and positive definite: BB' + I of random B.
std::vector<double> positive_definite(int64_t sets, int64_t d) {
  std::vector<double> a(static_cast<std::size_t>(sets * d * d));
  for (int64_t s = 0; s < sets; ++s) {
    const auto b =
        normal<double>(d * d, 70 + static_cast<uint64_t>(s), 0, 1 / std::sqrt(double(d)));
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double sum = i == j ? 1 : 0;
        for (int64_t k = 0; k < d; ++k) {
          sum += b[static_cast<std::size_t>(i * d + k)] * b[static_cast<std::size_t>(j * d + k)];
        }
        a[static_cast<std::size_t>((s * d + i) * d + j)] = sum;
        a[static_cast<std::size_t>((s * d + j) * d + i)] = sum;
      }
    }
  }
  return a;
}

// |F A F - I| of one matrix: what an inverse square root must make vanish.
double inverse_sqrt_error(const std::vector<double>& f, const double* a, int64_t d) {
  std::vector<double> fa(static_cast<std::size_t>(d * d), 0.0);
  const auto at = [d](int64_t i, int64_t j) { return static_cast<std::size_t>(i * d + j); };
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t k = 0; k < d; ++k) {
      for (int64_t j = 0; j < d; ++j) fa[at(i, j)] += f[at(i, k)] * a[at(k, j)];
    }
  }
  double worst = 0;
  for (int64_t i = 0; i < d; ++i) {
    double diagonal = 0;
    for (int64_t k = 0; k < d; ++k) diagonal += fa[at(i, k)] * f[at(k, i)];
    worst = std::max(worst, std::abs(diagonal - 1));
  }
  return worst;
}

// (BB' + delta I)^(-1/2) on the CPU: a tridiagonal reduction and a rational approximation.
Case inverse_sqrt_case(int64_t d) {
  struct State {
    std::vector<double> given, a, out, scratch;
  };
  const auto state = std::make_shared<State>();
  state->given = positive_definite(1, d);
  state->a.resize(state->given.size());
  state->out.resize(state->given.size());
  state->scratch.resize(static_cast<std::size_t>(cpu::InverseSqrt::scratch_size(d)));
  Case c;
  c.name = "inverse_sqrt";
  c.detail = fmt::format("one {} x {}, one thread, in double", d, d);
  c.work.flops = (4.0 / 3 + 2 + 1) * std::pow(static_cast<double>(d), 3);
  c.run = [state, d] {
    state->a = state->given;
    cpu::InverseSqrt inverse_sqrt(d, state->scratch.data());
    inverse_sqrt.reduce(state->a.data(), 1.0);
    inverse_sqrt.write(1.0, state->out.data());
  };
  c.validate = [state, d, run = c.run]() -> std::string {
    run();
    const double error = inverse_sqrt_error(state->out, state->given.data(), d);
    if (error <= 1e-10) return "";
    return fmt::format("F A F is off from I by {:.1e}", error);
  };
  return c;
}

#if CFAA_HAS_CUDA
// Users and items of both domains in one call of cuSOLVER.
Case eigensolver_case(Context& context, int64_t d) {
  struct State {
    std::vector<double> host;
    Tensor<double, 3> given, a;
    Tensor<double, 2> values;
  };
  const auto state = std::make_shared<State>();
  state->host = positive_definite(4, d);
  state->given = Tensor<double, 3>(context, {4, d, d}, state->host.data());
  state->a = Tensor<double, 3>(context, {4, d, d});
  state->values = Tensor<double, 2>(context, {4, d});
  Case c;
  c.name = "eigensolver";
  c.detail = fmt::format("4 of {} x {}, one batched call, in double", d, d);
  c.work.flops = 4 * 9 * std::pow(static_cast<double>(d), 3);
  c.run = [state, &context] {
    const Arena::Scope scope(context.scratch());
    context.runtime().copy(state->a.view().data, state->given.view().data, state->a.bytes());
    cuda::eigen_symmetric<double>(context, state->a.view(), state->values.view(),
                                  cuda::Eigenvectors::yes, FaultSite::slim_penalty);
  };
  c.validate = [state, d, &context, run = c.run]() -> std::string {
    run();
    context.check_faults();
    // The last matrix's last eigenvector: |A v - value v| against the value.
    const auto vectors = state->a.to_host();
    const double value = state->values.to_host().back();
    const double* v = vectors.data() + (4 * d - 1) * d;
    const double* a = state->host.data() + 3 * d * d;
    double error = 0;
    for (int64_t i = 0; i < d; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < d; ++j) sum += a[i * d + j] * v[j];
      error = std::max(error, std::abs(sum - value * v[i]));
    }
    if (error <= 1e-10 * value) return "";
    return fmt::format("an eigenvector is off by {:.1e}", error / value);
  };
  return c;
}
#endif

}  // namespace

template <class T>
std::vector<Case> block_cases(Context& context, const Sizes& sizes) {
  std::vector<Case> cases;
  cases.push_back(linear_case<T>(context, "linear_first", sizes.n, kTowerInput, sizes.d));
  cases.push_back(linear_case<T>(context, "linear_last", sizes.n, sizes.d, sizes.d));
  cases.push_back(copy_case<T>(context, int64_t{32} << 20 >> 2));
  if (std::is_same_v<T, double>) {
    if (context.device() == DeviceKind::cpu) cases.push_back(inverse_sqrt_case(sizes.d));
#if CFAA_HAS_CUDA
    if (context.device() == DeviceKind::cuda) cases.push_back(eigensolver_case(context, sizes.d));
#endif
  }
  return cases;
}

CFAA_FOR_FLOAT_AND_DOUBLE(block_cases);

}  // namespace cfaa::bench
