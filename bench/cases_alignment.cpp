#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/cases.h"
#include "bench/reference/embedding_sets.h"
#include "bench/reference/horizontal.h"
#include "bench/reference/inputs.h"
#include "bench/reference/vertical.h"
#include "bench/validate.h"
#include "host/core/instantiate.h"
#include "host/core/tensor.h"
#include "host/ops/horizontal_loss.h"
#include "host/ops/vertical_loss.h"

namespace cfaa::bench {
namespace {

using reference::normal;

// Users and items of both domains: two pairs of (N, D), shifted and scaled against each other, and
// room for their gradients.
template <class T>
struct Pairs {
  Pairs(Context& at, const Sizes& given)
      : context(at),
        sizes(given),
        sets(context, {set_of(0), set_of(1), set_of(2), set_of(3)}, /*padding=*/0) {}

  reference::HostSet set_of(uint64_t set) const {
    const bool source = set < 2;
    return reference::normal_set(sizes.n, sizes.d, set, source ? 0.0 : 0.3, source ? 0.5 : 0.7);
  }

  Context& context;
  Sizes sizes;
  reference::EmbeddingSets<T> sets;
};

template <class T>
double tolerance() {
  return std::is_same_v<T, float> ? 2e-3 : 1e-8;
}

// Where the sample of checked attributes lies: first, last and in between.
std::vector<int64_t> checked_attributes(int64_t d) {
  return {0, d / 2, d - 1};
}

template <class T>
Case typical_samples_case(const std::shared_ptr<Pairs<T>>& p) {
  const Sizes& sizes = p->sizes;
  const auto samples_gradient =
      std::make_shared<Tensor<T, 3>>(p->context, std::array{int64_t{4}, sizes.d, sizes.k},
                                     normal<T>(4 * sizes.d * sizes.k, 9, 0, 1).data());
  const auto step = [p, samples_gradient] {
    p->sets.clear_gradients();
    const auto forward =
        typical_samples<T>(p->context, p->sets.pairs(), p->sizes.alignment.typical);
    typical_samples_backward<T>(p->context, p->sets.pairs(), forward, samples_gradient->view(), 1.0,
                                p->sets.gradient_pairs());
    return forward;
  };

  Case c;
  c.name = "typical_samples";
  c.detail = fmt::format("4 sets of {} x {}, K {}, {} iterations, forward and backward", sizes.n,
                         sizes.d, sizes.k, sizes.alignment.typical.iterations);
  const double assignments = 4.0 * static_cast<double>(sizes.d * sizes.n * sizes.k);
  c.work.exponentials = assignments * static_cast<double>(sizes.alignment.typical.iterations + 1);
  c.run = [p, step] {
    const Arena::Scope scope(p->context.scratch());
    step();
  };
  c.validate = [p, step, samples_gradient]() -> std::string {
    const Arena::Scope scope(p->context.scratch());
    const auto samples = to_host(p->context, step().samples);
    const auto above = samples_gradient->to_host();
    const auto below = p->sets.gradient(3);
    for (const int64_t q : checked_attributes(p->sizes.d)) {
      const auto source = p->sets.host(1).column(q), target = p->sets.host(3).column(q);
      const auto expected = reference::typical_column(
          target, p->sizes.k,
          reference::attribute_alpha(p->sizes.alignment.typical, source, target),
          p->sizes.alignment.typical.iterations);
      const auto first = static_cast<std::ptrdiff_t>((3 * p->sizes.d + q) * p->sizes.k);
      const auto found =
          std::vector<double>(samples.begin() + first, samples.begin() + first + p->sizes.k);
      const auto dm =
          std::vector<double>(above.begin() + first, above.begin() + first + p->sizes.k);
      std::vector<double> dz;
      for (int64_t i = 0; i < p->sizes.n; ++i) {
        dz.push_back(below[static_cast<std::size_t>(i * p->sizes.d + q)]);
      }
      const double error = std::max(relative_error(found, expected.samples),
                                    relative_error(dz, reference::column_gradient(expected, dm)));
      if (!(error <= tolerance<T>())) {
        return fmt::format("attribute {} is off by {:.1e} from plain loops in double", q, error);
      }
    }
    return "";
  };
  return c;
}

// Q problems of K ascending samples, as typical samples give them.
template <class T>
struct Problems {
  Problems(Context& context, const Sizes& sizes) : context(context), sizes(sizes) {
    for (const int side : {0, 1}) {
      std::vector<T> samples = normal<T>(2 * sizes.d * sizes.k, 20 + static_cast<uint64_t>(side),
                                         0.3 * side, 0.5 + 0.2 * side);
      for (int64_t q = 0; q < 2 * sizes.d; ++q) {
        std::sort(samples.begin() + q * sizes.k, samples.begin() + (q + 1) * sizes.k);
      }
      tensors[side] = Tensor<T, 2>(context, {2 * sizes.d, sizes.k}, samples.data());
      host[side].assign(samples.begin(), samples.end());
    }
  }

  std::vector<double> problem(int side, int64_t q) const {
    return {host[side].begin() + q * sizes.k, host[side].begin() + (q + 1) * sizes.k};
  }

  Context& context;
  Sizes sizes;
  Tensor<T, 2> tensors[2];
  std::vector<double> host[2];
};

template <class T>
Case coupling_case(Context& context, const Sizes& sizes, OtSolver solver) {
  const auto p = std::make_shared<Problems<T>>(context, sizes);
  CouplingOptions options = sizes.alignment.coupling;
  options.solver = solver;
  options.scale = OtScale::transport;
  const auto solve = [p, options] {
    return coupling<T>(p->context, p->tensors[0].view(), p->tensors[1].view(), options);
  };

  Case c;
  const bool entropic = solver == OtSolver::sinkhorn;
  c.name = entropic ? "coupling" : "coupling_exact";
  const double problems = 2.0 * static_cast<double>(sizes.d);
  const double entries = problems * static_cast<double>(sizes.k * sizes.k);
  if (entropic) {
    c.detail = fmt::format("{} problems, K {}, {} iterations, loss and gradient", 2 * sizes.d,
                           sizes.k, options.iterations);
    c.work.flops = 4 * entries * static_cast<double>(options.iterations);
  } else {
    c.detail = fmt::format("{} problems, K {}, loss and gradient", 2 * sizes.d, sizes.k);
    c.work.bytes = 4 * problems * static_cast<double>(sizes.k) * sizeof(T);
  }
  c.run = [p, solve] {
    const Arena::Scope scope(p->context.scratch());
    solve();
  };
  c.validate = [p, solve, options]() -> std::string {
    const Arena::Scope scope(p->context.scratch());
    const Coupling<T> result = solve();
    const auto loss = to_host(p->context, result.loss);
    const auto gradient = to_host(p->context, result.gradient[1]);
    for (const int64_t q : checked_attributes(2 * p->sizes.d)) {
      const auto source = p->problem(0, q), target = p->problem(1, q);
      const reference::Transport expected = reference::transport(source, target, options);
      const std::vector<double> found(gradient.begin() + q * p->sizes.k,
                                      gradient.begin() + (q + 1) * p->sizes.k);
      const double error =
          std::max(relative_error({loss[static_cast<std::size_t>(q)]}, {expected.loss}),
                   relative_error(found, expected.target_gradient));
      if (!(error <= tolerance<T>())) {
        return fmt::format("problem {} is off by {:.1e} from plain loops in double", q, error);
      }
    }
    return "";
  };
  return c;
}

template <class T>
Case vertical_loss_case(const std::shared_ptr<Pairs<T>>& p) {
  const Sizes& sizes = p->sizes;
  const auto step = [p] {
    p->sets.clear_gradients();
    const auto forward = vertical_loss<T>(p->context, p->sets.pairs(), p->sizes.alignment);
    vertical_loss_backward<T>(p->context, p->sets.pairs(), forward, 1.0, p->sets.gradient_pairs());
    return forward;
  };

  Case c;
  c.name = "vertical_loss";
  c.detail =
      fmt::format("4 sets of {} x {}, K {}, forward and backward", sizes.n, sizes.d, sizes.k);
  const double assignments = 4.0 * static_cast<double>(sizes.d * sizes.n * sizes.k);
  c.work.exponentials = assignments * static_cast<double>(sizes.alignment.typical.iterations + 1);
  c.run = [p, step] {
    const Arena::Scope scope(p->context.scratch());
    step();
  };
  c.validate = [p, step]() -> std::string {
    const Arena::Scope scope(p->context.scratch());
    const VerticalLoss<T> forward = step();
    const auto samples = to_host(p->context, forward.typical.samples);
    const auto loss = to_host(p->context, forward.coupling.loss);
    const auto k = p->sizes.k;
    const CouplingOptions& options = p->sizes.alignment.coupling;
    for (const int64_t q : checked_attributes(2 * p->sizes.d)) {
      const auto first = samples.begin() + q * k;
      const auto second = samples.begin() + (2 * p->sizes.d + q) * k;
      const std::vector<double> source(first, first + k), target(second, second + k);
      double expected = reference::transport(source, target, options).loss;
      if (options.scale == OtScale::paper) expected /= static_cast<double>(k * k);
      const double error = relative_error({loss[static_cast<std::size_t>(q)]}, {expected});
      if (!(error <= tolerance<T>())) {
        return fmt::format("attribute {} is off by {:.1e} from plain loops in double", q, error);
      }
    }
    return "";
  };
  return c;
}

// Multiplications and additions of SLIM's rounds and of the graph's distance, counted as dense
// matrix work: inverse D^3 * 2, product D^3 * 2, symmetric product D^3, eigenvectors D^3 * 9.
double horizontal_flops(const Sizes& sizes) {
  const double d3 = std::pow(static_cast<double>(sizes.d), 3);
  const double gram = static_cast<double>(sizes.n * sizes.d * sizes.d);
  const auto rounds = static_cast<double>(sizes.alignment.slim.iterations);
  const double slim = 4 * (gram + rounds * (2 + 2) * d3 + (rounds - 1) * (1 + 9 + 1) * d3);
  const double graph = 2 * (2 * 2 + 2 + 9 + 12) * d3;
  const double backward = 4 * (3 * 2 * d3 + 2 * gram);
  return slim + graph + backward;
}

template <class T>
std::string compare_with_plain_loops(Pairs<T>& part) {
  using reference::Matrix;
  const Sizes& sizes = part.sizes;
  const Arena::Scope scope(part.context.scratch());
  part.sets.clear_gradients();
  const auto forward = horizontal_loss<T>(part.context, part.sets.pairs(), sizes.alignment);
  horizontal_loss_backward<T>(part.context, part.sets.pairs(), sizes.alignment, forward, 1.0,
                              part.sets.gradient_pairs());
  part.context.check_faults();

  std::vector<Matrix> z;
  std::vector<reference::SlimRounds> rounds;
  for (std::size_t set = 0; set < 4; ++set) {
    z.emplace_back(sizes.n, sizes.d, part.sets.host(set).values);
    rounds.push_back(reference::slim(z.back(), sizes.alignment.slim));
  }
  const double floor = sizes.alignment.graph_floor;
  const double expected = reference::graph_distance(rounds[0].b, rounds[2].b, floor) +
                          reference::graph_distance(rounds[1].b, rounds[3].b, floor);
  const Matrix gradient =
      reference::slim_gradient(z[2], rounds[2], sizes.alignment.slim.step,
                               reference::graph_gradient(rounds[2].b, rounds[0].b, floor));
  const auto found = part.sets.gradient(2);
  const double error =
      std::max(relative_error({to_host(part.context, forward.loss)[0]}, {expected}),
               relative_error({found.begin(), found.end()}, gradient.values));
  if (error <= tolerance<T>()) return "";
  return fmt::format("{} x {} is off by {:.1e} from plain loops in double", sizes.n, sizes.d,
                     error);
}

// (Z'Z)(B - I) + nu Xi B, off the diagonal, of the first set; the exact step makes it vanish.
template <class T>
std::string slope_of_objective(const Pairs<T>& p, const Slim& slim) {
  if (p.sizes.alignment.slim.step != SlimStep::exact) return "";
  const int64_t d = p.sizes.d;
  using reference::Matrix;
  const Matrix z(p.sizes.n, d, p.sets.host(0).values);
  const Matrix b(d, d, to_host(p.context, slim.b[0]));
  const Matrix xi = slim.xi.data == nullptr ? 2.0 * reference::identity(d)
                                            : Matrix(d, d, to_host(p.context, slim.xi[0]));
  const double nu = to_host(p.context, slim.nu)[0];
  const Matrix gram = reference::transpose(z) * z;
  const Matrix slope = gram * (b + -1.0 * reference::identity(d)) + nu * (xi * b);
  double off = 0, scale = 0;
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      if (i != j) off = std::max(off, std::abs(slope(i, j)));
      scale = std::max(scale, std::abs(gram(i, j)));
    }
  }
  if (off <= 1e-8 * scale) return "";
  return fmt::format("the objective of SLIM has a slope of {:.1e} at B", off / scale);
}

template <class T>
Case horizontal_loss_case(const std::shared_ptr<Pairs<T>>& p) {
  const Sizes& sizes = p->sizes;
  const auto step = [p] {
    p->sets.clear_gradients();
    const auto forward = horizontal_loss<T>(p->context, p->sets.pairs(), p->sizes.alignment);
    horizontal_loss_backward<T>(p->context, p->sets.pairs(), p->sizes.alignment, forward, 1.0,
                                p->sets.gradient_pairs());
    return forward;
  };

  Case c;
  c.name = "horizontal_loss";
  c.detail = fmt::format("4 sets of {} x {}, {} rounds, forward and backward", sizes.n, sizes.d,
                         sizes.alignment.slim.iterations);
  c.work.flops = horizontal_flops(sizes);
  c.run = [p, step] {
    const Arena::Scope scope(p->context.scratch());
    step();
  };
  // The plain loops take minutes at the paper's size. So the op is checked against them on a small
  // part of the data, and at its own size by what defines B: the objective has no slope there.
  c.validate = [p, step]() -> std::string {
    Sizes small = p->sizes;
    small.n = std::min<int64_t>(small.n, 40);
    small.d = std::min<int64_t>(small.d, 24);
    Pairs<T> part(p->context, small);
    const std::string wrong = compare_with_plain_loops(part);
    if (!wrong.empty()) return wrong;
    const Arena::Scope scope(p->context.scratch());
    const HorizontalLoss<T> forward = step();
    p->context.check_faults();
    return slope_of_objective(*p, forward.slim);
  };
  return c;
}

}  // namespace

template <class T>
std::vector<Case> alignment_cases(Context& context, const Sizes& sizes) {
  const auto pairs = std::make_shared<Pairs<T>>(context, sizes);
  std::vector<Case> cases;
  cases.push_back(typical_samples_case<T>(pairs));
  cases.push_back(coupling_case<T>(context, sizes, OtSolver::sinkhorn));
  cases.push_back(coupling_case<T>(context, sizes, OtSolver::exact));
  cases.push_back(vertical_loss_case<T>(pairs));
  cases.push_back(horizontal_loss_case<T>(pairs));
  return cases;
}

CFAA_FOR_FLOAT_AND_DOUBLE(alignment_cases);

}  // namespace cfaa::bench
