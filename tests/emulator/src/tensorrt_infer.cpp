// TensorRT's rules for types and shapes.

#include <algorithm>

#include "tensorrt_graph.h"

namespace emulator::tensorrt {
namespace {

using nvinfer1::ElementWiseOperation;
using nvinfer1::MatrixOperation;

std::string types_differ(const Form& a, const Form& b) {
  return std::string("its inputs have the types ") + name_of(a.type) + " and " + name_of(b.type) +
         ": a strongly typed network converts nothing by itself";
}

// Equal, or one of them 1; an unknown extent may be either.
bool broadcast(std::int64_t a, std::int64_t b, std::int64_t& out) {
  if (a == b) return out = a, true;
  if (a == 1) return out = b, true;
  if (b == 1) return out = a, true;
  if (a == -1 || b == -1) return out = std::max(a, b), true;
  return false;
}

std::string broadcast(const std::vector<Form>& inputs, Dims& out) {
  out = inputs[0].dims;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Dims& dims = inputs[i].dims;
    if (dims.nbDims != out.nbDims) {
      return "its inputs have the shapes " + describe(out) + " and " + describe(dims) +
             ", of different rank";
    }
    for (int d = 0; d < out.nbDims; ++d) {
      if (!broadcast(out.d[d], dims.d[d], out.d[d])) {
        return "the shapes " + describe(inputs[0].dims) + " and " + describe(dims) +
               " cannot be broadcast";
      }
    }
  }
  return "";
}

bool fits(std::int64_t extent, std::int64_t wanted) {
  return extent == wanted || extent == -1 || wanted == -1;
}

std::string infer_elementwise(const Layer& layer, const std::vector<Form>& in, Form& out) {
  const auto operation = static_cast<ElementWiseOperation>(layer.operation[0]);
  if (in[0].type != in[1].type) return types_differ(in[0], in[1]);
  const bool logical =
      operation == ElementWiseOperation::kAND || operation == ElementWiseOperation::kOR;
  if (logical != (in[0].type == DataType::kBOOL)) {
    return std::string("this operation does not take ") + name_of(in[0].type);
  }
  const bool compares = operation == ElementWiseOperation::kEQUAL ||
                        operation == ElementWiseOperation::kGREATER ||
                        operation == ElementWiseOperation::kLESS;
  out.type = compares ? DataType::kBOOL : in[0].type;
  return broadcast(in, out.dims);
}

std::string infer_gather(const Layer& layer, const std::vector<Form>& in, Form& out) {
  const Form &data = in[0], &indices = in[1];
  const int axis = layer.operation[0];
  if (indices.type != DataType::kINT32) return "the indices are not of type Int32";
  if (axis < 0 || axis >= data.dims.nbDims) return "the axis does not exist";
  out.type = data.type;
  out.dims.nbDims = data.dims.nbDims - 1 + indices.dims.nbDims;
  if (out.dims.nbDims > Dims::MAX_DIMS) return "the output has more than 8 dimensions";
  int at = 0;
  for (int d = 0; d < data.dims.nbDims; ++d) {
    if (d != axis) {
      out.dims.d[at++] = data.dims.d[d];
      continue;
    }
    for (int i = 0; i < indices.dims.nbDims; ++i) out.dims.d[at++] = indices.dims.d[i];
  }
  return "";
}

std::string infer_matrix_multiply(const Layer& layer, const std::vector<Form>& in, Form& out) {
  if (in[0].type != in[1].type) return types_differ(in[0], in[1]);
  if (!is_real(in[0].type)) return std::string("it does not take ") + name_of(in[0].type);
  const Dims &a = in[0].dims, &b = in[1].dims;
  if (a.nbDims != b.nbDims || a.nbDims < 2) {
    return "matrices of the shapes " + describe(a) + " and " + describe(b) +
           " differ in rank, or have less than 2 dimensions";
  }
  const int last = a.nbDims - 1;
  const auto is_transposed = [&](int i) {
    return static_cast<MatrixOperation>(layer.operation[i]) == MatrixOperation::kTRANSPOSE;
  };
  out = {in[0].type, a};
  for (int d = 0; d < last - 1; ++d) {
    if (!broadcast(a.d[d], b.d[d], out.dims.d[d])) return "the batches cannot be broadcast";
  }
  const std::int64_t inner = a.d[is_transposed(0) ? last - 1 : last];
  if (!fits(inner, b.d[is_transposed(1) ? last : last - 1])) {
    return "the inner extents of " + describe(a) + " and " + describe(b) + " differ";
  }
  out.dims.d[last - 1] = a.d[is_transposed(0) ? last : last - 1];
  out.dims.d[last] = b.d[is_transposed(1) ? last - 1 : last];
  return "";
}

std::string permute(const nvinfer1::Permutation& permutation, Dims& dims) {
  const Dims before = dims;
  bool seen[Dims::MAX_DIMS] = {};
  for (int d = 0; d < dims.nbDims; ++d) {
    const int from = permutation.order[d];
    if (from < 0 || from >= dims.nbDims || seen[from]) return "its permutation is none";
    seen[from] = true;
    dims.d[d] = before.d[from];
  }
  return "";
}

std::string infer_shuffle(const Layer& layer, const std::vector<Form>& in, Form& out) {
  out = in[0];
  if (layer.transposes[0]) {
    if (std::string why = permute(layer.permutations[0], out.dims); !why.empty()) return why;
  }
  if (layer.reshape.nbDims >= 0) {
    const Dims before = out.dims;
    out.dims = layer.reshape;
    int inferred = -1;
    for (int d = 0; d < out.dims.nbDims; ++d) {
      if (out.dims.d[d] == 0) {  // copied; which side of a transpose it means is not documented
        if (d >= before.nbDims) return "a 0 of its shape has no dimension to copy";
        if (layer.transposes[0] && layer.permutations[0].order[d] != d) {
          return "a 0 of its shape copies a dimension that the first transpose moved";
        }
        out.dims.d[d] = before.d[d];
      } else if (out.dims.d[d] == -1) {
        if (inferred >= 0) return "its shape has two -1";
        inferred = d;
      }
    }
    const std::int64_t total = volume(before);
    if (total >= 0) {
      std::int64_t rest = 1;
      for (int d = 0; d < out.dims.nbDims; ++d) {
        if (d != inferred) rest *= out.dims.d[d];
      }
      if (inferred >= 0) out.dims.d[inferred] = rest > 0 ? total / rest : 0;
      if (volume(out.dims) != total) {
        return "a tensor of shape " + describe(before) + " cannot take the shape " +
               describe(layer.reshape);
      }
    }
  }
  if (layer.transposes[1]) return permute(layer.permutations[1], out.dims);
  return "";
}

std::string infer_reduce(const Layer& layer, const std::vector<Form>& in, Form& out) {
  if (!is_real(in[0].type)) return std::string("it does not take ") + name_of(in[0].type);
  const auto axes = static_cast<std::uint32_t>(layer.operation[1]);
  if (axes == 0 || axes >> in[0].dims.nbDims != 0) return "its axes do not exist";
  if ((axes & (axes - 1)) != 0) return "the emulated device reduces one axis at a time";
  out = {in[0].type, {0, {}}};
  for (int d = 0; d < in[0].dims.nbDims; ++d) {
    if ((axes >> d & 1) == 0) {
      out.dims.d[out.dims.nbDims++] = in[0].dims.d[d];
    } else if (layer.flag) {
      out.dims.d[out.dims.nbDims++] = 1;
    }
  }
  return "";
}

std::string infer_select(const std::vector<Form>& in, Form& out) {
  if (in[0].type != DataType::kBOOL) return "its condition is not of type Bool";
  if (in[1].type != in[2].type) return types_differ(in[1], in[2]);
  out.type = in[1].type;
  return broadcast(in, out.dims);
}

std::string infer_normalization(const Layer& layer, const std::vector<Form>& in, Form& out) {
  if (in[0].type != in[1].type) return types_differ(in[0], in[1]);
  if (in[0].type != in[2].type) return types_differ(in[0], in[2]);
  if (!is_real(in[0].type)) return std::string("it does not take ") + name_of(in[0].type);
  if (static_cast<std::uint32_t>(layer.operation[1]) != 1u << (in[0].dims.nbDims - 1)) {
    return "the emulated device normalises over the last axis only";
  }
  out = in[0];
  for (int i = 1; i < 3; ++i) {
    const Dims& dims = in[static_cast<std::size_t>(i)].dims;
    if (dims.nbDims != out.dims.nbDims) return "scale and bias must have the rank of the input";
    for (int d = 0; d < dims.nbDims; ++d) {
      if (dims.d[d] != 1 && !fits(dims.d[d], out.dims.d[d])) {
        return "scale or bias of shape " + describe(dims) + " do not fit " + describe(out.dims);
      }
    }
  }
  return "";
}

std::string infer_attention(const std::vector<Form>& in, Form& out) {
  const Form &q = in[0], &k = in[1], &v = in[2];
  if (q.type != k.type) return types_differ(q, k);
  if (q.type != v.type) return types_differ(q, v);
  if (!is_real(q.type)) return std::string("it does not take ") + name_of(q.type);
  for (int i = 0; i < 3; ++i) {
    const Dims& dims = in[static_cast<std::size_t>(i)].dims;
    if (dims.nbDims != 4) return "query, key and value need 4 dimensions";
    for (int d : {0, 1, 3}) {
      if (!fits(dims.d[d], q.dims.d[d])) return "query, key and value differ in shape";
    }
  }
  if (!fits(k.dims.d[2], v.dims.d[2])) return "key and value differ in length";
  if (in.size() > 3 && in[3].type == DataType::kINT32) {
    const Dims& lengths = in[3].dims;
    if (lengths.nbDims != 1 || !fits(lengths.d[0], q.dims.d[0])) {
      return "lengths of shape " + describe(lengths) + " are not one for each of the batch";
    }
  } else if (in.size() > 3) {
    const Form& mask = in[3];
    if (mask.type != DataType::kBOOL && mask.type != q.type) {
      return std::string("a mask of type ") + name_of(mask.type) + " is neither Bool nor added";
    }
    if (mask.dims.nbDims != 4) return "the mask needs 4 dimensions";
    const std::int64_t wanted[4] = {q.dims.d[0], q.dims.d[1], q.dims.d[2], k.dims.d[2]};
    for (int d = 0; d < 4; ++d) {  // only batch and heads may be broadcast
      const bool spread = d < 2 && mask.dims.d[d] == 1;
      const bool one_against_unknown = mask.dims.d[d] == 1 && wanted[d] != 1;
      if (!spread && (!fits(mask.dims.d[d], wanted[d]) || one_against_unknown)) {
        return "a mask of shape " + describe(mask.dims) +
               " does not fit: its queries and keys must be given in full";
      }
    }
  }
  out = q;
  return "";
}

}  // namespace

bool is_real(DataType type) {
  return type == DataType::kFLOAT || type == DataType::kHALF || type == DataType::kBF16;
}

std::size_t bytes_of(DataType type) {
  switch (type) {
    case DataType::kFLOAT:
    case DataType::kINT32:
      return 4;
    case DataType::kHALF:
    case DataType::kBF16:
      return 2;
    case DataType::kINT64:
      return 8;
    default:
      return 1;
  }
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::kFLOAT:
      return "Float";
    case DataType::kHALF:
      return "Half";
    case DataType::kINT32:
      return "Int32";
    case DataType::kBOOL:
      return "Bool";
    case DataType::kBF16:
      return "BFloat16";
    case DataType::kINT64:
      return "Int64";
    default:
      return "a type that the emulated device has not";
  }
}

std::string describe(const Dims& dims) {
  std::string text = "(";
  for (int d = 0; d < dims.nbDims; ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(dims.d[d]);
  }
  return text + ")";
}

std::int64_t volume(const Dims& dims) {
  std::int64_t count = 1;
  for (int d = 0; d < dims.nbDims; ++d) {
    if (dims.d[d] < 0) return -1;
    count *= dims.d[d];
  }
  return count;
}

int Graph::find(const std::string& name) const {
  for (const std::vector<int>* side : {&inputs, &outputs}) {
    for (int tensor : *side) {
      if (tensors[static_cast<std::size_t>(tensor)].name == name) return tensor;
    }
  }
  return -1;
}

std::string infer(const Layer& layer, const std::vector<Form>& in, Form& out) {
  switch (layer.kind) {
    case Kind::constant:
      return "";  // its form was given
    case Kind::gather:
      return infer_gather(layer, in, out);
    case Kind::elementwise:
      return infer_elementwise(layer, in, out);
    case Kind::unary:
    case Kind::activation:
      out = in[0];
      return is_real(in[0].type) ? "" : std::string("it does not take ") + name_of(in[0].type);
    case Kind::matrix_multiply:
      return infer_matrix_multiply(layer, in, out);
    case Kind::shuffle:
      return infer_shuffle(layer, in, out);
    case Kind::reduce:
      return infer_reduce(layer, in, out);
    case Kind::select:
      return infer_select(in, out);
    case Kind::cast:
      out = {static_cast<DataType>(layer.operation[0]), in[0].dims};
      return "";
    case Kind::normalization:
      return infer_normalization(layer, in, out);
    case Kind::attention:
      return infer_attention(in, out);
  }
  return "unknown layer";
}

std::string infer_all(const Graph& graph, std::vector<Form>& forms) {
  for (const Layer& layer : graph.layers) {
    std::vector<Form> in;
    for (int input : layer.inputs) in.push_back(forms[static_cast<std::size_t>(input)]);
    const std::string why = infer(layer, in, forms[static_cast<std::size_t>(layer.output)]);
    if (!why.empty()) return "layer " + layer.name + ": " + why;
  }
  return "";
}

}  // namespace emulator::tensorrt
