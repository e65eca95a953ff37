#include "host/model/parameters.h"

#include <algorithm>

namespace cfaa {

template <class T>
int Parameters<T>::add_layer(std::string name, int64_t rows, int64_t cols, int group) {
  int64_t& size = groups_[static_cast<std::size_t>(group)].size;
  layers_.push_back({std::move(name), rows, cols, size, group});
  size += (rows * cols + 63) / 64 * 64;  // each begins where vectors like it
  return static_cast<int>(layers_.size()) - 1;
}

template <class T>
int Parameters<T>::add_group() {
  groups_.emplace_back();
  return groups() - 1;
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
  for (Group& group : groups_) {
    for (Tensor<T, 1>* array : {&group.w, &group.m, &group.v}) {
      *array = Tensor<T, 1>(context, {std::max<int64_t>(group.size, 1)});
      array->fill_zero();
    }
  }
  allocate_gradients(context, 1);
}

template <class T>
void Parameters<T>::allocate_gradients(Context& context, int64_t batches) {
  for (Group& group : groups_) {
    group.g.resize(static_cast<std::size_t>(batches));
    for (Tensor<T, 1>& gradient : group.g) {
      gradient = Tensor<T, 1>(context, {std::max<int64_t>(group.size, 1)});
      gradient.fill_zero();
    }
  }
}

template <class T>
std::vector<typename Parameters<T>::Piece> Parameters<T>::pieces(
    int group, const std::function<bool(const std::string&)>& left_out) const {
  std::vector<Piece> found;
  int64_t first = 0;
  const auto end_at = [&](int64_t end) {
    if (end > first) found.push_back({first, end - first});
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (layer.group != group || !left_out(layer.name)) continue;
    end_at(layer.offset);
    first = layer.offset + (layer.rows * layer.cols + 63) / 64 * 64;
  }
  end_at(at(group).w.view().size());
  return found;
}

template <class T>
void Parameters<T>::for_each(
    const std::function<void(const std::string& name, MatrixView<T> array)>& visit) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int layer = static_cast<int>(i);
    visit(layers_[i].name, weight(layer));
    visit("adam.m." + layers_[i].name, slice(group_of(layer).m, layer));
    visit("adam.v." + layers_[i].name, slice(group_of(layer).v, layer));
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
