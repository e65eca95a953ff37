#include "host/model/parameters.h"

#include <algorithm>

namespace cfaa {

template <class T>
int Parameters<T>::add_layer(std::string name, int64_t rows, int64_t cols) {
  layers_.push_back({std::move(name), rows, cols, size_});
  size_ += (rows * cols + 63) / 64 * 64;  // each begins where vectors like it
  return static_cast<int>(layers_.size()) - 1;
}

template <class T>
int Parameters<T>::add_table(Context& context, std::string name, int64_t rows, int64_t cols) {
  tables_.push_back({std::move(name), Tensor<T, 2>(context, {rows, cols}),
                     Tensor<T, 2>(context, {rows, cols}), Tensor<T, 2>(context, {rows, cols})});
  tables_.back().m.fill_zero();
  tables_.back().v.fill_zero();
  return static_cast<int>(tables_.size()) - 1;
}

template <class T>
void Parameters<T>::allocate(Context& context) {
  for (Tensor<T, 1>* array : {&w_, &g_, &m_, &v_}) {
    *array = Tensor<T, 1>(context, {std::max<int64_t>(size_, 1)});
    array->fill_zero();
  }
}

template <class T>
void Parameters<T>::for_each(
    const std::function<void(const std::string& name, MatrixView<T> array)>& visit) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int layer = static_cast<int>(i);
    visit(layers_[i].name, slice(w_, layer));
    visit("adam.m." + layers_[i].name, slice(m_, layer));
    visit("adam.v." + layers_[i].name, slice(v_, layer));
  }
  for (Table& table : tables_) {
    visit(table.name, table.w);
    visit("adam.m." + table.name, table.m);
    visit("adam.v." + table.name, table.v);
  }
}

template class Parameters<float>;
template class Parameters<double>;

}  // namespace cfaa
