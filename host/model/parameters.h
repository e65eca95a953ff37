#pragma once

// What is learned. Layers are dense: their weights lie in one array, their gradients in another, so
// that Adam is one pass. Tables (id rows, history rows) are row-sparse: a step reads and writes the
// rows that its batch touches. Every one has a name, which checkpoints and traces use.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/tensor.h"

namespace cfaa {

template <class T>
class Parameters {
 public:
  struct Layer {
    std::string name;
    int64_t rows, cols;  // a bias is (1, n)
    int64_t offset;      // in the dense arrays
  };
  struct Table {
    std::string name;
    Tensor<T, 2> w, m, v;
  };

  // All layers are added first, then allocate() is called once.
  int add_layer(std::string name, int64_t rows, int64_t cols);
  int add_table(Context& context, std::string name, int64_t rows, int64_t cols);
  void allocate(Context& context);

  const std::vector<Layer>& layers() const { return layers_; }
  std::deque<Table>& tables() { return tables_; }
  Table& table(int index) { return tables_[static_cast<std::size_t>(index)]; }

  MatrixView<T> weight(int layer) const { return slice(w_, layer); }
  MatrixView<T> gradient(int layer) const { return slice(g_, layer); }
  VectorView<T> bias(int layer) const { return flat(weight(layer)); }
  VectorView<T> bias_gradient(int layer) const { return flat(gradient(layer)); }

  VectorView<T> dense() const { return w_; }
  VectorView<T> dense_gradient() const { return g_; }
  VectorView<T> dense_m() const { return m_; }
  VectorView<T> dense_v() const { return v_; }

  // Every array that a checkpoint holds: weights and both moments, by name and shape.
  void for_each(const std::function<void(const std::string& name, MatrixView<T> array)>& visit);

 private:
  MatrixView<T> slice(const Tensor<T, 1>& array, int layer) const {
    const Layer& l = layers_[static_cast<std::size_t>(layer)];
    return {array.view().data + l.offset, {l.rows, l.cols}};
  }
  static VectorView<T> flat(MatrixView<T> row) { return {row.data, {row.size()}}; }

  std::vector<Layer> layers_;
  int64_t size_ = 0;
  Tensor<T, 1> w_, g_, m_, v_;
  std::deque<Table> tables_;
};

}  // namespace cfaa
