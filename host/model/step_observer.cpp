#include "host/model/step_observer.h"

namespace cfaa {
namespace {

template <class T>
MatrixView<const T> as_row(VectorView<T> vector) {
  return {vector.data, {1, vector.size()}};
}

}  // namespace

template <class T>
void NamedArrays<T>::part_done(std::string_view part, const StepArrays<T>& arrays) {
  if (part == "towers" || part == "scorer" || part == "update") return;
  if (part != "backward") {
    show_("loss." + std::string(part), as_row(arrays.loss), {});
    const bool scores = arrays.loss_rows == LossRows::scores;
    show_((scores ? "gradient.score." : "gradient.z.") + std::string(part), arrays.loss_gradient,
          {});
    return;
  }
  for (const auto& run : arrays.runs) {
    const std::string name = tower_name(run->domain, run->side);
    run->show([&](const std::string& array, MatrixView<const T> values) {
      show_(array + "." + name, values, {});
    });
  }
  show_("z", arrays.z, {});
  show_("score", as_row(arrays.score), {});
  show_("loss.score", as_row(arrays.score_loss), {});
  show_("gradient.score", as_row(arrays.dscore), {});
  show_("gradient.z", arrays.dz, {});
  for (std::size_t i = 0; i < parameters_.layers().size(); ++i) {
    show_("gradient." + parameters_.layers()[i].name, parameters_.gradient(static_cast<int>(i)),
          {});
  }
  for (const TableGradient<T>& table : arrays.tables) {
    show_("gradient." + parameters_.table(table.table).name, table.gradient, table.touched.row);
  }
}

template class NamedArrays<float>;
template class NamedArrays<double>;

}  // namespace cfaa
