#pragma once

// What is learned. Layers are dense: the weights of a group lie in one array, their gradients in
// another, so that Adam is one pass. Group 0 is the model's; a loss may have one of its own. Tables
// (id rows, history rows) are row-sparse: a step reads and writes the rows that its batch touches.
// Every one has a name, which checkpoints and traces use.

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
    int64_t offset;      // in the dense arrays of its group
    int group;
  };
  struct Table {
    std::string name;
    Tensor<T, 2> w, m, v;
  };

  // All layers are added first, then allocate() is called once, and with more gradients than one
  // before anything is learned.
  int add_layer(std::string name, int64_t rows, int64_t cols, int group = 0);
  int add_group();
  int add_table(Context& context, std::string name, int64_t rows, int64_t cols);
  void allocate(Context& context);
  // Gradients of several batches beside each other, and whose gradient() is from now on.
  void allocate_gradients(Context& context, int64_t batches);
  void use_gradient(int64_t batch) { gradient_ = static_cast<std::size_t>(batch); }

  const std::vector<Layer>& layers() const { return layers_; }
  std::deque<Table>& tables() { return tables_; }
  Table& table(int index) { return tables_[static_cast<std::size_t>(index)]; }

  MatrixView<T> weight(int layer) const { return slice(group_of(layer).w, layer); }
  MatrixView<T> gradient(int layer) const { return slice(group_of(layer).g[gradient_], layer); }
  VectorView<T> bias(int layer) const { return flat(weight(layer)); }
  VectorView<T> bias_gradient(int layer) const { return flat(gradient(layer)); }

  int groups() const { return static_cast<int>(groups_.size()); }
  VectorView<T> dense(int group = 0) const { return at(group).w; }
  VectorView<T> dense_gradient(int group = 0) const { return at(group).g[gradient_]; }
  VectorView<T> dense_m(int group = 0) const { return at(group).m; }
  VectorView<T> dense_v(int group = 0) const { return at(group).v; }

  // Pieces of a group's dense arrays without the layers that `left_out` names; all of it where
  // there are none such.
  struct Piece {
    int64_t first, count;
  };
  std::vector<Piece> pieces(int group,
                            const std::function<bool(const std::string&)>& left_out) const;

  // Every array that a checkpoint holds: weights and both moments, by name and shape.
  void for_each(const std::function<void(const std::string& name, MatrixView<T> array)>& visit);

 private:
  struct Group {
    int64_t size = 0;
    Tensor<T, 1> w, m, v;
    std::vector<Tensor<T, 1>> g = std::vector<Tensor<T, 1>>(1);  // of each batch
  };

  const Group& at(int group) const { return groups_[static_cast<std::size_t>(group)]; }
  const Group& group_of(int layer) const {
    return at(layers_[static_cast<std::size_t>(layer)].group);
  }
  MatrixView<T> slice(const Tensor<T, 1>& array, int layer) const {
    const Layer& l = layers_[static_cast<std::size_t>(layer)];
    return {array.view().data + l.offset, {l.rows, l.cols}};
  }
  static VectorView<T> flat(MatrixView<T> row) { return {row.data, {row.size()}}; }

  std::vector<Layer> layers_;
  std::deque<Group> groups_ = std::deque<Group>(1);
  std::deque<Table> tables_;
  std::size_t gradient_ = 0;
};

}  // namespace cfaa
