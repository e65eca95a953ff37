// The two alignment losses, and what they are made of.

#include <cfaa/core/error.h>
#include <cfaa/core/tensor.h>
#include <cfaa/ops/alignment_config.h>
#include <cfaa/ops/horizontal_loss.h>
#include <cfaa/ops/vertical_loss.h>
#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "arrays.h"
#include "contexts.h"
#include "module.h"

namespace cfaa::python {
namespace nb = nanobind;
namespace {

AlignmentOptions options_of(const std::string& json, const std::string& origin) {
  AlignmentOptions options;
  alignment_option_set(options).read(nlohmann::json::parse(json), origin);
  return options;
}

// Source and target, of one type and on one device.
struct Pair {
  Pair(nb::handle zs, nb::handle zt) : source(zs, "zs"), target(zt, "zt") {
    check_alike(source, "zs", target, "zt");
  }

  template <class T>
  EmbeddingPair<T> views() const {
    return {source.view<T>(), target.view<T>()};
  }

  InputMatrix source, target;
};

// A loss and, where wanted, its gradients: `pass(context, pair, gradient)` returns the view of the
// loss; gradient is null where it is not wanted.
template <class T, class Pass>
nb::object loss_of(const Pair& pair, bool gradients, const Pass& pass) {
  const std::shared_ptr<Context> context = context_of(pair.source.device());
  using Gradient = OutputArray<T, 2>;
  std::optional<Gradient> source, target;
  double loss = 0;
  {
    const nb::gil_scoped_release without_the_gil;
    const EmbeddingPair<T> views = pair.views<T>();
    const EmbeddingPairs<T> pairs(&views, 1);
    check_pairs<T>(pairs);
    GradientPair<T> gradient;
    if (gradients) {
      source.emplace(context, views.source.shape);
      target.emplace(context, views.target.shape);
      gradient = {source->view(), target->view()};
    }
    const Arena::Scope scope(context->scratch());
    const VectorView<T> value =
        pass(*context, pairs, gradients ? GradientPairs<T>(&gradient, 1) : GradientPairs<T>());
    context->check_faults();
    loss = to_host(*context, value)[0];
  }
  if (!gradients) return nb::float_(loss);
  return nb::make_tuple(
      loss, nb::make_tuple(std::move(*source).to_python(), std::move(*target).to_python()));
}

// Calls `work` for the type of the arrays.
template <class Work>
auto by_type(const InputMatrix& matrix, const Work& work) {
  return matrix.is_double() ? work(double{}) : work(float{});
}

nb::object vertical(nb::handle zs, nb::handle zt, const AlignmentOptions& options, bool gradients) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) {
    return loss_of<T>(pair, gradients,
                      [&](Context& context, EmbeddingPairs<T> pairs, GradientPairs<T> gradient) {
                        const auto forward = vertical_loss<T>(context, pairs, options);
                        if (!gradient.empty()) {
                          vertical_loss_backward<T>(context, pairs, forward, 1.0, gradient);
                        }
                        return forward.loss;
                      });
  });
}

nb::object horizontal(nb::handle zs, nb::handle zt, const AlignmentOptions& options,
                      bool gradients) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) {
    return loss_of<T>(
        pair, gradients, [&](Context& context, EmbeddingPairs<T> pairs, GradientPairs<T> gradient) {
          const auto forward = horizontal_loss<T>(context, pairs, options);
          if (!gradient.empty()) {
            horizontal_loss_backward<T>(context, pairs, options, forward, 1.0, gradient);
          }
          return forward.loss;
        });
  });
}

// Arrays that a forward keeps, by name.
template <class... Arrays>
nb::dict named(std::initializer_list<const char*> names, Arrays&&... arrays) {
  nb::dict result;
  auto name = names.begin();
  ((result[*name++] = std::move(arrays).to_python()), ...);
  return result;
}

// Everything the vertical loss holds fixed in its backward, of one pair: sets 0 and 1 are source
// and target.
nb::object vertical_state(nb::handle zs, nb::handle zt, const AlignmentOptions& options) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) -> nb::object {
    const auto context = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const Arena::Scope scope(context->scratch());
    VerticalLoss<T> forward;
    {
      const nb::gil_scoped_release without_the_gil;
      forward = vertical_loss<T>(*context, {&views, 1}, options, /*keep_plans=*/true);
      context->check_faults();
    }
    const TypicalSamples<T>& typical = forward.typical;
    return named({"samples", "previous", "weight", "centre", "spread", "bandwidth", "plan"},
                 keep(context, typical.samples), keep(context, typical.previous),
                 keep(context, typical.weight), keep(context, typical.centre),
                 keep(context, typical.spread), keep(context, typical.bandwidth),
                 keep(context, forward.plan));
  });
}

// Likewise of the horizontal loss.
nb::object horizontal_state(nb::handle zs, nb::handle zt, const AlignmentOptions& options) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) -> nb::object {
    const auto context = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const Arena::Scope scope(context->scratch());
    HorizontalLoss<T> forward;
    {
      const nb::gil_scoped_release without_the_gil;
      forward = horizontal_loss<T>(*context, {&views, 1}, options);
      context->check_faults();
    }
    nb::dict state = named({"b", "nu", "laplacian"}, keep(context, forward.slim.b),
                           keep(context, forward.slim.nu), keep(context, forward.graph.laplacian));
    if (forward.slim.xi.data) state["xi"] = keep(context, forward.slim.xi).to_python();
    return state;
  });
}

nb::object typical(nb::handle zs, nb::handle zt, const AlignmentOptions& options) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) -> nb::object {
    const auto context = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const Arena::Scope scope(context->scratch());
    TypicalSamples<T> result;
    {
      const nb::gil_scoped_release without_the_gil;
      result = typical_samples<T>(*context, {&views, 1}, options.typical);
      context->check_faults();
    }
    return nb::make_tuple(
        keep(context, result.samples[0]).to_python(), keep(context, result.samples[1]).to_python(),
        keep(context, result.column_std).to_python(), keep(context, result.sample_std).to_python());
  });
}

nb::object coupling_of(nb::handle source, nb::handle target, const AlignmentOptions& options) {
  const InputMatrix from(source, "source"), to(target, "target");
  check_alike(from, "source", to, "target");
  if (from.rows() != to.rows() || from.cols() != to.cols() || from.rows() * from.cols() == 0) {
    throw Error(fmt::format(
        "source is {} x {} and target {} x {}; give both as problems x samples, at least one each",
        from.rows(), from.cols(), to.rows(), to.cols()));
  }
  return by_type(from, [&]<class T>(T) -> nb::object {
    const auto context = context_of(from.device());
    OutputArray<T, 3> plan(context, {from.rows(), from.cols(), from.cols()});
    const Arena::Scope scope(context->scratch());
    Coupling<T> result;
    {
      const nb::gil_scoped_release without_the_gil;
      result = coupling<T>(*context, from.view<T>(), to.view<T>(), options.coupling, plan.view());
      context->check_faults();
    }
    return nb::make_tuple(std::move(plan).to_python(), keep(context, result.loss).to_python(),
                          keep(context, result.iterations).to_python(),
                          keep(context, result.marginal_error).to_python(),
                          keep(context, result.converged).to_python());
  });
}

}  // namespace

void bind_alignment(nb::module_& module) {
  nb::class_<AlignmentOptions>(module, "AlignmentOptions")
      .def(nb::new_(&options_of), nb::arg("json"), nb::arg("origin"));
  const auto define = [&](const char* name, auto function) {
    module.def(name, function, nb::arg("zs"), nb::arg("zt"), nb::arg("options"));
  };
  for (const auto& [name, loss] :
       {std::pair{"vertical_loss", &vertical}, std::pair{"horizontal_loss", &horizontal}}) {
    module.def(name, loss, nb::arg("zs"), nb::arg("zt"), nb::arg("options"), nb::arg("gradients"));
  }
  define("vertical_state", &vertical_state);
  define("horizontal_state", &horizontal_state);
  define("typical_samples", &typical);
  module.def("coupling", &coupling_of, nb::arg("source"), nb::arg("target"), nb::arg("options"));
}

}  // namespace cfaa::python
