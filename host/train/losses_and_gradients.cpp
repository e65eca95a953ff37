#include "host/train/losses_and_gradients.h"

#include <cmath>

#include "host/core/error.h"

namespace cfaa {

std::string first_difference(const std::vector<NamedBytes>& a, const std::vector<NamedBytes>& b) {
  CFAA_ASSERT(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CFAA_ASSERT(a[i].name == b[i].name);
    if (a[i].bytes != b[i].bytes) return a[i].name;
  }
  return "";
}

template <class T>
Deviation largest_deviation(const std::vector<NamedBytes>& a, const std::vector<NamedBytes>& b) {
  CFAA_ASSERT(a.size() == b.size());
  Deviation largest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CFAA_ASSERT(a[i].name == b[i].name && a[i].bytes.size() == b[i].bytes.size());
    const T *x = reinterpret_cast<const T*>(a[i].bytes.data()),
            *y = reinterpret_cast<const T*>(b[i].bytes.data());
    double apart = 0, size = 0;
    for (std::size_t j = 0; j < a[i].bytes.size() / sizeof(T); ++j) {
      apart += std::pow(static_cast<double>(x[j]) - static_cast<double>(y[j]), 2);
      size += std::pow(static_cast<double>(y[j]), 2);
    }
    const double relative = apart == 0 ? 0 : std::sqrt(apart / size);
    const bool tolerable = relative <= (a[i].name.starts_with("loss.") ? 2e-4 : 2e-3);
    if (largest.tolerable && (!tolerable || relative > largest.relative)) {
      largest = {a[i].name, relative, tolerable};
    }
  }
  return largest;
}

template <class T>
void LossesAndGradients<T>::part_done(std::string_view part, const StepArrays<T>& arrays) {
  const auto add = [&](const std::string& name, VectorView<T> values) {
    arrays_.push_back({name, {values.data, {1, values.size()}}});
  };
  if (part == "towers") {
    arrays_.clear();
  } else if (part == "scorer") {
    add("loss.score", arrays.score_loss);
  } else if (part == "backward") {
    arrays_.push_back({"z", arrays.z});
    arrays_.push_back({"gradient.z", arrays.dz});
    for (int group = 0; group < parameters_.groups(); ++group) {
      add("the layers' gradient", parameters_.dense_gradient(group));
    }
    for (const TableGradient<T>& table : arrays.tables) {
      arrays_.push_back({"gradient." + parameters_.table(table.table).name, table.gradient,
                         table.touched.count.data});
    }
    before_update_();
  } else if (part != "update") {
    add("loss." + std::string(part), arrays.loss);
  }
}

template <class T>
std::vector<NamedBytes> LossesAndGradients<T>::read(Context& context) const {
  DeviceRuntime& runtime = context.runtime();
  std::vector<NamedBytes> all;
  for (const Array& array : arrays_) {
    int64_t rows = array.values.rows();
    if (array.rows != nullptr) {
      int32_t written = 0;
      runtime.copy_to_host(&written, array.rows, sizeof(written));
      runtime.synchronize();
      rows = written;
    }
    CFAA_ASSERT(array.values.cols() == 1 || array.values.stride[1] == 1);
    const std::size_t row_bytes = static_cast<std::size_t>(array.values.cols()) * sizeof(T);
    NamedBytes copy{array.name, std::vector<std::byte>(static_cast<std::size_t>(rows) * row_bytes)};
    for (int64_t r = 0; r < rows; ++r) {
      runtime.copy_to_host(copy.bytes.data() + static_cast<std::size_t>(r) * row_bytes,
                           array.values.data + r * array.values.stride[0], row_bytes);
    }
    runtime.synchronize();
    all.push_back(std::move(copy));
  }
  return all;
}

template Deviation largest_deviation<float>(const std::vector<NamedBytes>&,
                                            const std::vector<NamedBytes>&);
template Deviation largest_deviation<double>(const std::vector<NamedBytes>&,
                                             const std::vector<NamedBytes>&);
template class LossesAndGradients<float>;
template class LossesAndGradients<double>;

}  // namespace cfaa
