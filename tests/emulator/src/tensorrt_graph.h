#pragma once
// A TensorRT network as the emulated device keeps it: tensors, layers in the order in which they
// were added, profiles. Recorded by tensorrt_network.cpp, checked by tensorrt_infer.cpp, written
// and read by tensorrt_blob.cpp, run by tensorrt_run.cpp behind tensorrt_engine.cpp.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace emulator::tensorrt {

using nvinfer1::DataType;
using nvinfer1::Dims;

enum class Kind : std::int32_t {
  constant,
  gather,
  elementwise,
  unary,
  activation,
  matrix_multiply,
  shuffle,
  reduce,
  select,
  cast,
  normalization,
  attention
};

struct Layer {
  Kind kind = Kind::constant;
  std::string name;
  std::vector<int> inputs;  // tensors
  int output = -1;
  std::int32_t operation[2] = {0, 0};  // the layer's enum, or its axis or axes
  bool flag = false;                   // reduce: keep dimensions; attention: decomposable
  float epsilon = 1e-5f;
  bool transposes[2] = {false, false};  // shuffle: before and after the reshape
  nvinfer1::Permutation permutations[2] = {};
  Dims reshape{-1, {}};                // nbDims -1: none
  std::vector<unsigned char> weights;  // constant, from the build on
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFLOAT;
  Dims dims{-1, {}};                         // -1: known at run time
  std::vector<std::string> dimension_names;  // of an input
};

struct Profile {
  std::map<std::string, Dims> shapes[3];  // by OptProfileSelector
};

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Layer> layers;
  std::vector<int> inputs, outputs;
  std::vector<Profile> profiles;
  bool tf32 = true;

  int find(const std::string& name) const;  // an input's or output's tensor, or -1
};

// What a tensor is, or will be at run time.
struct Form {
  DataType type = DataType::kFLOAT;
  Dims dims{-1, {}};
};

bool is_real(DataType type);  // float, half, bfloat16
std::size_t bytes_of(DataType type);
const char* name_of(DataType type);
std::string describe(const Dims& dims);
std::int64_t volume(const Dims& dims);  // -1 where a dimension is unknown

// The form of a layer's output, by TensorRT's rules for strongly typed networks: types agree or
// the layer is refused. Returns the reason, or "".
std::string infer(const Layer& layer, const std::vector<Form>& inputs, Form& output);

// All layers with the inputs' forms filled in; "" or the reason.
std::string infer_all(const Graph& graph, std::vector<Form>& forms);

// An engine's bytes: version, architecture and checksum, then the graph.
std::vector<unsigned char> write_engine(const Graph& graph);
// nullptr with the reason, where the bytes are damaged, of another version or another GPU.
std::shared_ptr<const Graph> read_engine(const void* bytes, std::size_t size, std::string& why);

// A file of bytes with the same head, for timing caches.
std::vector<unsigned char> with_head(const std::vector<unsigned char>& body);
std::string check_head(const void* bytes, std::size_t size, std::span<const unsigned char>& body);

// One tensor's elements at run time: rounded to the type, kept as float, or whole numbers and
// truth values.
struct Value {
  Form form;
  std::vector<float> real;
  std::vector<std::int32_t> whole;
};
Value read_value(const Form& form, const void* from);
void write_value(const Value& value, void* to);
float rounded(DataType type, float x);

// The output's value, given the values of the inputs.
Value run_graph(const Graph& graph, const std::map<int, Value>& inputs,
                const std::map<int, std::shared_ptr<const Value>>& constants);

std::uint64_t checksum(const void* bytes, std::size_t size);

}  // namespace emulator::tensorrt
