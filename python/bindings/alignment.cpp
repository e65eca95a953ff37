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

// Each loss, and its backward where `gradients` are not empty: returns the view of the loss.
struct Vertical {
  const AlignmentOptions& options;

  template <class T>
  VectorView<T> operator()(Context& context, EmbeddingPairs<T> pairs,
                           GradientPairs<T> gradients) const {
    const auto forward = vertical_loss<T>(context, pairs, options);
    if (!gradients.empty()) {
      vertical_loss_backward<T>(context, pairs, forward, 1.0, gradients);
    }
    return forward.loss;
  }
};

struct Horizontal {
  const AlignmentOptions& options;

  template <class T>
  VectorView<T> operator()(Context& context, EmbeddingPairs<T> pairs,
                           GradientPairs<T> gradients) const {
    const auto forward = horizontal_loss<T>(context, pairs, options);
    if (!gradients.empty()) {
      horizontal_loss_backward<T>(context, pairs, options, forward, 1.0, gradients);
    }
    return forward.loss;
  }
};

// Calls `work` for the type of the arrays.
template <class Work>
auto by_type(const InputMatrix& matrix, const Work& work) {
  return matrix.is_double() ? work(double{}) : work(float{});
}

// Runs `work`, which queues ops, behind what the default stream of a GPU holds (arrays come by
// DLPack, which promises no more), and waits for it.
template <class Work>
void compute(const ThreadContext& used, const Work& work) {
  const nb::gil_scoped_release without_the_gil;
  used.caller->run(0, work);
  used.caller->check();
}

// A loss as a number and, where wanted, its gradients as arrays.
template <class Loss>
nb::any loss_of(nb::handle zs, nb::handle zt, const AlignmentOptions& options, bool gradients) {
  const Pair pair(zs, zt);
  return as_any(by_type(pair.source, [&]<class T>(T) -> nb::object {
    const ThreadContext used = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const EmbeddingPairs<T> pairs(&views, 1);
    check_pairs<T>(pairs);
    std::optional<OutputArray<T, 2>> source, target;
    T loss = 0;
    compute(used, [&] {
      GradientPair<T> gradient;
      if (gradients) {
        source.emplace(used, views.source.shape);
        target.emplace(used, views.target.shape);
        gradient = {source->view(), target->view()};
      }
      const Arena::Scope scope(used.context->scratch());
      const VectorView<T> value =
          Loss{options}(*used.context, pairs, GradientPairs<T>(&gradient, gradients ? 1 : 0));
      used.context->runtime().copy_to_host(&loss, value.data, sizeof(T));
    });
    const nb::float_ value(static_cast<double>(loss));
    if (!gradients) return value;
    return nb::make_tuple(
        value, nb::make_tuple(std::move(*source).to_python(), std::move(*target).to_python()));
  }));
}

// The same into arrays of the caller's, in the order of the caller's stream: `value` (1, 1), and
// `gs` and `gt`, which are added to, or none.
template <class Loss>
void loss_into(nb::handle zs, nb::handle zt, const AlignmentOptions& options, nb::handle value,
               nb::handle gs, nb::handle gt, std::uintptr_t stream) {
  const Pair pair(zs, zt);
  const OutputMatrix loss(value, "value");
  check_alike(pair.source, "zs", loss, "value");
  std::optional<OutputMatrix> source, target;
  if (!gs.is_none()) {
    source.emplace(gs, "gs");
    target.emplace(gt, "gt");
    check_alike(pair.source, "zs", *source, "gs");
    check_alike(pair.source, "zs", *target, "gt");
  }
  by_type(pair.source, [&]<class T>(T) {
    const ThreadContext used = context_of(pair.source.device());
    const nb::gil_scoped_release without_the_gil;
    const EmbeddingPair<T> views = pair.views<T>();
    const EmbeddingPairs<T> pairs(&views, 1);
    check_pairs<T>(pairs);
    GradientPair<T> gradient;
    if (source) gradient = {source->view<T>(), target->view<T>()};
    const GradientPairs<T> gradients(&gradient, source ? 1 : 0);
    if (source) check_gradients<T>(pairs, gradients);
    used.caller->run(stream, [&] {
      const Arena::Scope scope(used.context->scratch());
      const VectorView<T> result = Loss{options}(*used.context, pairs, gradients);
      used.context->runtime().copy(loss.view<T>().data, result.data, sizeof(T));
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
nb::dict vertical_state(nb::handle zs, nb::handle zt, const AlignmentOptions& options) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) -> nb::dict {
    const ThreadContext used = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const Arena::Scope scope(used.context->scratch());
    VerticalLoss<T> forward;
    compute(used, [&] {
      forward = vertical_loss<T>(*used.context, {&views, 1}, options, /*keep_plans=*/true);
    });
    const TypicalSamples<T>& typical = forward.typical;
    return named({"samples", "previous", "weight", "centre", "spread", "bandwidth", "plan"},
                 keep(used, typical.samples), keep(used, typical.previous),
                 keep(used, typical.weight), keep(used, typical.centre), keep(used, typical.spread),
                 keep(used, typical.bandwidth), keep(used, forward.plan));
  });
}

// Likewise of the horizontal loss.
nb::dict horizontal_state(nb::handle zs, nb::handle zt, const AlignmentOptions& options) {
  const Pair pair(zs, zt);
  return by_type(pair.source, [&]<class T>(T) -> nb::dict {
    const ThreadContext used = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const Arena::Scope scope(used.context->scratch());
    HorizontalLoss<T> forward;
    compute(used, [&] { forward = horizontal_loss<T>(*used.context, {&views, 1}, options); });
    nb::dict state = named({"b", "nu", "laplacian"}, keep(used, forward.slim.b),
                           keep(used, forward.slim.nu), keep(used, forward.graph.laplacian));
    if (forward.slim.xi.data) state["xi"] = keep(used, forward.slim.xi).to_python();
    return state;
  });
}

nb::any typical(nb::handle zs, nb::handle zt, const AlignmentOptions& options) {
  const Pair pair(zs, zt);
  return as_any(by_type(pair.source, [&]<class T>(T) -> nb::object {
    const ThreadContext used = context_of(pair.source.device());
    const EmbeddingPair<T> views = pair.views<T>();
    const Arena::Scope scope(used.context->scratch());
    TypicalSamples<T> result;
    compute(used, [&] {
      result = typical_samples<T>(*used.context, {&views, 1}, options.typical);
    });
    return nb::make_tuple(
        keep(used, result.samples[0]).to_python(), keep(used, result.samples[1]).to_python(),
        keep(used, result.column_std).to_python(), keep(used, result.sample_std).to_python());
  }));
}

nb::any coupling_of(nb::handle source, nb::handle target, const AlignmentOptions& options) {
  const InputMatrix from(source, "source"), to(target, "target");
  check_alike(from, "source", to, "target");
  if (from.rows() != to.rows() || from.cols() != to.cols() || from.rows() * from.cols() == 0) {
    throw Error(fmt::format(
        "source is {} x {} and target {} x {}; give both as problems x samples, at least one each",
        from.rows(), from.cols(), to.rows(), to.cols()));
  }
  return as_any(by_type(from, [&]<class T>(T) -> nb::object {
    const ThreadContext used = context_of(from.device());
    OutputArray<T, 3> plan(used, {from.rows(), from.cols(), from.cols()});
    const Arena::Scope scope(used.context->scratch());
    Coupling<T> result;
    compute(used, [&] {
      result =
          coupling<T>(*used.context, from.view<T>(), to.view<T>(), options.coupling, plan.view());
    });
    return nb::make_tuple(std::move(plan).to_python(), keep(used, result.loss).to_python(),
                          keep(used, result.iterations).to_python(),
                          keep(used, result.marginal_error).to_python(),
                          keep(used, result.converged).to_python());
  }));
}

// Waits for what was queued by this thread; Error where a loss met what it cannot compute.
void check_faults(const std::string& device) {
  const ThreadContext used = context_of(device);
  const nb::gil_scoped_release without_the_gil;
  used.caller->check();
}

}  // namespace

void bind_alignment(nb::module_& module) {
  nb::class_<AlignmentOptions>(module, "AlignmentOptions")
      .def(nb::new_(&options_of), nb::arg("json"), nb::arg("origin"));
  const auto define = [&](const char* name, auto function) {
    module.def(name, function, nb::arg("zs"), nb::arg("zt"), nb::arg("options"));
  };
  const auto define_loss = [&]<class Loss>(const std::string& name, Loss*) {
    module.def(name.c_str(), &loss_of<Loss>, nb::arg("zs"), nb::arg("zt"), nb::arg("options"),
               nb::arg("gradients"));
    module.def((name + "_into").c_str(), &loss_into<Loss>, nb::arg("zs"), nb::arg("zt"),
               nb::arg("options"), nb::arg("value"), nb::arg("gs").none(), nb::arg("gt").none(),
               nb::arg("stream"));
  };
  define_loss("vertical_loss", static_cast<Vertical*>(nullptr));
  define_loss("horizontal_loss", static_cast<Horizontal*>(nullptr));
  module.def("check_faults", &check_faults, nb::arg("device"));
  define("vertical_state", &vertical_state);
  define("horizontal_state", &horizontal_state);
  define("typical_samples", &typical);
  module.def("coupling", &coupling_of, nb::arg("source"), nb::arg("target"), nb::arg("options"));
}

}  // namespace cfaa::python
