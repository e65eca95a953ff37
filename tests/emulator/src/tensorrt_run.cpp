// Runs a network layer by layer. A value has its type's precision after every layer, as where
// TensorRT fuses nothing; within one, sums are in float.

#include <cblas.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "fail.h"
#include "tensorrt_graph.h"

namespace emulator::tensorrt {
namespace {

using nvinfer1::ActivationType;
using nvinfer1::ElementWiseOperation;
using nvinfer1::MatrixOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;
using Inputs = std::vector<const Value*>;

float to_bfloat16(float x) {
  if (std::isnan(x)) return x;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

float to_tf32(float x) {  // 10 bits of mantissa
  if (!std::isfinite(x)) return x;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000u);
}

void round_all(Value& value) {
  if (value.form.type == DataType::kFLOAT) return;
  for (float& x : value.real) x = rounded(value.form.type, x);
}

// Steps of a tensor when it is read along `out`: 0 where it is broadcast.
struct Steps {
  std::int64_t step[Dims::MAX_DIMS] = {};
};
Steps steps_along(const Dims& dims, const Dims& out) {
  Steps steps;
  std::int64_t step = 1;
  for (int d = dims.nbDims - 1; d >= 0; --d) {
    steps.step[d] = dims.d[d] == 1 && out.d[d] != 1 ? 0 : step;
    step *= dims.d[d];
  }
  return steps;
}

// body(row, {offset of each input at the row's start}) for every row along the last dimension.
template <std::size_t N, class Body>
void for_rows(const Dims& out, const std::array<Steps, N>& steps, Body body) {
  const int last = out.nbDims - 1;
  std::int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= out.d[d];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::array<std::int64_t, N> offsets{};
    std::int64_t rest = row;
    for (int d = last - 1; d >= 0; --d) {
      const std::int64_t at = rest % out.d[d];
      rest /= out.d[d];
      for (std::size_t i = 0; i < N; ++i) offsets[i] += at * steps[i].step[d];
    }
    body(row, offsets);
  }
}

template <class From, class To, class F>
void zip(const Dims& out, const Value& a, const Value& b, const std::vector<From>& x,
         const std::vector<From>& y, std::vector<To>& z, F f) {
  const std::array<Steps, 2> steps = {steps_along(a.form.dims, out), steps_along(b.form.dims, out)};
  const int last = out.nbDims - 1;
  const std::int64_t count = last < 0 ? 1 : out.d[last];
  const std::int64_t dx = last < 0 ? 0 : steps[0].step[last];
  const std::int64_t dy = last < 0 ? 0 : steps[1].step[last];
  for_rows(out, steps, [&](std::int64_t row, const std::array<std::int64_t, 2>& at) {
    const From* from_x = x.data() + at[0];
    const From* from_y = y.data() + at[1];
    To* to = z.data() + row * count;
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<To>(f(from_x[i * dx], from_y[i * dy]));
  });
}

template <class T>
void arithmetic(ElementWiseOperation operation, const Value& a, const Value& b,
                const std::vector<T>& x, const std::vector<T>& y, Value& out, std::vector<T>& z) {
  const auto run = [&](auto f) { zip(out.form.dims, a, b, x, y, z, f); };
  const auto compare = [&](auto f) { zip(out.form.dims, a, b, x, y, out.whole, f); };
  switch (operation) {
    case ElementWiseOperation::kSUM:
      return run([](T p, T q) { return p + q; });
    case ElementWiseOperation::kPROD:
      return run([](T p, T q) { return p * q; });
    case ElementWiseOperation::kMAX:
      return run([](T p, T q) { return std::max(p, q); });
    case ElementWiseOperation::kMIN:
      return run([](T p, T q) { return std::min(p, q); });
    case ElementWiseOperation::kSUB:
      return run([](T p, T q) { return p - q; });
    case ElementWiseOperation::kDIV:
      return run([](T p, T q) { return p / q; });
    case ElementWiseOperation::kAND:
      return compare([](T p, T q) { return p != 0 && q != 0; });
    case ElementWiseOperation::kOR:
      return compare([](T p, T q) { return p != 0 || q != 0; });
    case ElementWiseOperation::kEQUAL:
      return compare([](T p, T q) { return p == q; });
    case ElementWiseOperation::kGREATER:
      return compare([](T p, T q) { return p > q; });
    case ElementWiseOperation::kLESS:
      return compare([](T p, T q) { return p < q; });
  }
}

void elementwise(const Layer& layer, const Inputs& in, Value& out) {
  const auto operation = static_cast<ElementWiseOperation>(layer.operation[0]);
  const Value &a = *in[0], &b = *in[1];
  if (is_real(a.form.type)) {
    arithmetic(operation, a, b, a.real, b.real, out, out.real);
  } else {
    arithmetic(operation, a, b, a.whole, b.whole, out, out.whole);
  }
}

void select(const Inputs& in, Value& out) {
  const std::array<Steps, 3> steps = {steps_along(in[0]->form.dims, out.form.dims),
                                      steps_along(in[1]->form.dims, out.form.dims),
                                      steps_along(in[2]->form.dims, out.form.dims)};
  const int last = out.form.dims.nbDims - 1;
  const std::int64_t count = out.form.dims.d[last];
  for_rows(out.form.dims, steps, [&](std::int64_t row, const std::array<std::int64_t, 3>& at) {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool condition =
          in[0]->whole[static_cast<std::size_t>(at[0] + i * steps[0].step[last])] != 0;
      const int chosen = condition ? 1 : 2;
      const std::size_t from =
          static_cast<std::size_t>(at[static_cast<std::size_t>(chosen)] +
                                   i * steps[static_cast<std::size_t>(chosen)].step[last]);
      const std::size_t to = static_cast<std::size_t>(row * count + i);
      const Value& source = *in[static_cast<std::size_t>(chosen)];
      if (is_real(out.form.type)) {
        out.real[to] = source.real[from];
      } else {
        out.whole[to] = source.whole[from];
      }
    }
  });
}

void gather(const Layer& layer, const Inputs& in, Value& out) {
  const Dims& dims = in[0]->form.dims;
  const int axis = layer.operation[0];
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= dims.d[d];
  for (int d = axis + 1; d < dims.nbDims; ++d) inner *= dims.d[d];
  const auto count = static_cast<std::int64_t>(in[1]->whole.size());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = in[1]->whole[static_cast<std::size_t>(i)];
      if (index < 0 || index >= dims.d[axis]) {
        fail("TensorRT: layer %s gathers row %lld of %lld", layer.name.c_str(),
             static_cast<long long>(index), static_cast<long long>(dims.d[axis]));
      }
      const std::int64_t from = (o * dims.d[axis] + index) * inner, to = (o * count + i) * inner;
      if (is_real(out.form.type)) {
        std::copy_n(in[0]->real.begin() + from, inner, out.real.begin() + to);
      } else {
        std::copy_n(in[0]->whole.begin() + from, inner, out.whole.begin() + to);
      }
    }
  }
}

float activated(ActivationType type, float x) {
  switch (type) {
    case ActivationType::kRELU:
      return std::max(x, 0.0f);
    case ActivationType::kSIGMOID:
      return 1 / (1 + std::exp(-x));
    case ActivationType::kTANH:
      return std::tanh(x);
    case ActivationType::kGELU_ERF:
      return 0.5f * x * (1 + std::erf(0.70710678f * x));
    case ActivationType::kGELU_TANH:
      return 0.5f * x * (1 + std::tanh(0.79788456f * (0.044715f * x * x * x + x)));
  }
  return 0;
}

float applied(UnaryOperation operation, float x) {
  switch (operation) {
    case UnaryOperation::kEXP:
      return std::exp(x);
    case UnaryOperation::kSQRT:
      return std::sqrt(x);
    case UnaryOperation::kRECIP:
      return 1 / x;
    case UnaryOperation::kABS:
      return std::abs(x);
    case UnaryOperation::kNEG:
      return -x;
    case UnaryOperation::kERF:
      return std::erf(x);
    case UnaryOperation::kNOT:
      break;
  }
  return 0;
}

std::vector<float> operands(const Value& value, bool tf32) {
  std::vector<float> out = value.real;
  if (tf32 && value.form.type == DataType::kFLOAT) {
    for (float& x : out) x = to_tf32(x);
  }
  return out;
}

void multiply(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
              const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
              transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), 1.0f, a, static_cast<int>(transpose_a ? m : k), b,
              static_cast<int>(transpose_b ? k : n), 0.0f, c, static_cast<int>(n));
}

void matrix_multiply(const Layer& layer, const Inputs& in, Value& out, bool tf32) {
  const Dims &a = in[0]->form.dims, &b = in[1]->form.dims;
  const int last = a.nbDims - 1;
  const bool ta = static_cast<MatrixOperation>(layer.operation[0]) == MatrixOperation::kTRANSPOSE;
  const bool tb = static_cast<MatrixOperation>(layer.operation[1]) == MatrixOperation::kTRANSPOSE;
  const std::int64_t m = out.form.dims.d[last - 1], n = out.form.dims.d[last];
  const std::int64_t k = a.d[ta ? last - 1 : last];
  const std::vector<float> x = operands(*in[0], tf32), y = operands(*in[1], tf32);
  if (!ta && volume(b) == b.d[last] * b.d[last - 1]) {  // one matrix for the whole batch
    multiply(false, tb, static_cast<std::int64_t>(x.size()) / k, n, k, x.data(), y.data(),
             out.real.data());
    return;
  }
  // Batches: every index but the last two.
  Dims batch = out.form.dims;
  batch.nbDims = last - 1;
  std::int64_t batches = 1;
  for (int d = 0; d < batch.nbDims; ++d) batches *= batch.d[d];
  for (std::int64_t i = 0; i < batches; ++i) {
    std::int64_t rest = i, at_a = 0, at_b = 0, step_a = 1, step_b = 1;
    for (int d = batch.nbDims - 1; d >= 0; --d) {
      const std::int64_t at = rest % batch.d[d];
      rest /= batch.d[d];
      at_a += (a.d[d] == 1 ? 0 : at) * step_a;
      at_b += (b.d[d] == 1 ? 0 : at) * step_b;
      step_a *= a.d[d];
      step_b *= b.d[d];
    }
    multiply(ta, tb, m, n, k, x.data() + at_a * m * k, y.data() + at_b * k * n,
             out.real.data() + i * m * n);
  }
}

template <class T>
std::vector<T> transposed(const std::vector<T>& x, const Dims& dims,
                          const nvinfer1::Permutation& permutation) {
  std::int64_t step[Dims::MAX_DIMS], size = 1;
  for (int d = dims.nbDims - 1; d >= 0; --d) {
    step[d] = size;
    size *= dims.d[d];
  }
  std::vector<T> out(x.size());
  std::int64_t index[Dims::MAX_DIMS] = {};
  for (T& to : out) {
    std::int64_t from = 0;
    for (int d = 0; d < dims.nbDims; ++d) from += index[d] * step[permutation.order[d]];
    to = x[static_cast<std::size_t>(from)];
    for (int d = dims.nbDims - 1; d >= 0; --d) {
      if (++index[d] < dims.d[permutation.order[d]]) break;
      index[d] = 0;
    }
  }
  return out;
}

template <class T>
std::vector<T> shuffled(const Layer& layer, const std::vector<T>& x, const Dims& dims,
                        const Dims& out) {
  std::vector<T> y = layer.transposes[0] ? transposed(x, dims, layer.permutations[0]) : x;
  if (!layer.transposes[1]) return y;
  Dims middle = out;  // before the second transpose
  for (int d = 0; d < out.nbDims; ++d) middle.d[layer.permutations[1].order[d]] = out.d[d];
  return transposed(y, middle, layer.permutations[1]);
}

void reduce(const Layer& layer, const Inputs& in, Value& out) {
  const Dims& dims = in[0]->form.dims;
  const int axis = std::countr_zero(static_cast<std::uint32_t>(layer.operation[1]));
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= dims.d[d];
  for (int d = axis + 1; d < dims.nbDims; ++d) inner *= dims.d[d];
  const std::int64_t count = dims.d[axis];
  const auto operation = static_cast<ReduceOperation>(layer.operation[0]);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      float total = operation == ReduceOperation::kPROD  ? 1.0f
                    : operation == ReduceOperation::kMAX ? -std::numeric_limits<float>::infinity()
                    : operation == ReduceOperation::kMIN ? std::numeric_limits<float>::infinity()
                                                         : 0.0f;
      for (std::int64_t j = 0; j < count; ++j) {
        const float x = in[0]->real[static_cast<std::size_t>((o * count + j) * inner + i)];
        switch (operation) {
          case ReduceOperation::kSUM:
          case ReduceOperation::kAVG:
            total += x;
            break;
          case ReduceOperation::kPROD:
            total *= x;
            break;
          case ReduceOperation::kMAX:
            total = std::max(total, x);
            break;
          case ReduceOperation::kMIN:
            total = std::min(total, x);
            break;
        }
      }
      if (operation == ReduceOperation::kAVG) total /= static_cast<float>(count);
      out.real[static_cast<std::size_t>(o * inner + i)] = total;
    }
  }
}

void normalize(const Layer& layer, const Inputs& in, Value& out) {
  const Dims& dims = out.form.dims;
  const std::array<Steps, 2> steps = {steps_along(in[1]->form.dims, dims),
                                      steps_along(in[2]->form.dims, dims)};
  const int last = dims.nbDims - 1;
  const std::int64_t width = dims.d[last];
  for_rows(dims, steps, [&](std::int64_t row, const std::array<std::int64_t, 2>& at) {
    const float* x = in[0]->real.data() + row * width;
    float mean = 0, variance = 0;
    for (std::int64_t i = 0; i < width; ++i) mean += x[i];
    mean /= static_cast<float>(width);
    for (std::int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const float scale = 1 / std::sqrt(variance / static_cast<float>(width) + layer.epsilon);
    for (std::int64_t i = 0; i < width; ++i) {
      out.real[static_cast<std::size_t>(row * width + i)] =
          (x[i] - mean) * scale *
              in[1]->real[static_cast<std::size_t>(at[0] + i * steps[0].step[last])] +
          in[2]->real[static_cast<std::size_t>(at[1] + i * steps[1].step[last])];
    }
  });
}

// softmax(Q K' [masked]) V, of the first lengths[b] keys where lengths are given: no scaling. The
// scores are in float; the probabilities, as operands of the second product, in the type of the
// inputs.
void attend(const Inputs& in, Value& out, bool tf32) {
  const Dims &q = in[0]->form.dims, &k = in[1]->form.dims;
  const std::int64_t batch = q.d[0], heads = q.d[1], queries = q.d[2], width = q.d[3];
  const std::int64_t keys = k.d[2];
  const std::vector<float> query = operands(*in[0], tf32), key = operands(*in[1], tf32),
                           value = operands(*in[2], tf32);
  const Value* fourth = in.size() > 3 ? in[3] : nullptr;
  const bool has_lengths = fourth != nullptr && fourth->form.type == DataType::kINT32;
  const Value* mask = has_lengths ? nullptr : fourth;
  std::vector<float> scores(static_cast<std::size_t>(queries * keys));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t pair = b * heads + h;
      multiply(false, true, queries, keys, width, query.data() + pair * queries * width,
               key.data() + pair * keys * width, scores.data());
      const std::int64_t length = has_lengths ? fourth->whole[static_cast<std::size_t>(b)] : keys;
      if (length > keys) fail("TensorRT: attention was given a length beyond its keys");
      std::int64_t at_mask = 0;
      if (mask != nullptr) {
        const Dims& m = mask->form.dims;
        at_mask = ((m.d[0] == 1 ? 0 : b) * m.d[1] + (m.d[1] == 1 ? 0 : h)) * queries * keys;
      }
      for (std::int64_t i = 0; i < queries; ++i) {
        float* row = scores.data() + i * keys;
        float largest = -std::numeric_limits<float>::infinity(), total = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          if (mask != nullptr) {
            const auto at = static_cast<std::size_t>(at_mask + i * keys + j);
            if (is_real(mask->form.type)) {
              row[j] += mask->real[at];
            } else if (mask->whole[at] == 0) {
              row[j] = -std::numeric_limits<float>::infinity();
            }
          }
          if (j >= length) row[j] = -std::numeric_limits<float>::infinity();
          largest = std::max(largest, row[j]);
        }
        for (std::int64_t j = 0; j < keys; ++j) total += row[j] = std::exp(row[j] - largest);
        for (std::int64_t j = 0; j < keys; ++j) {
          row[j] = rounded(out.form.type, row[j] / total);
          if (tf32 && out.form.type == DataType::kFLOAT) row[j] = to_tf32(row[j]);
        }
      }
      multiply(false, false, queries, width, keys, scores.data(),
               value.data() + pair * keys * width, out.real.data() + pair * queries * width);
    }
  }
}

Value run_layer(const Layer& layer, const Inputs& in, const Form& form, bool tf32) {
  Value out{form, {}, {}};
  const auto count = static_cast<std::size_t>(volume(form.dims));
  const bool real = is_real(form.type);
  if (layer.kind == Kind::shuffle) {
    const Dims& dims = in[0]->form.dims;
    if (real) {
      out.real = shuffled(layer, in[0]->real, dims, form.dims);
    } else {
      out.whole = shuffled(layer, in[0]->whole, dims, form.dims);
    }
    return out;
  }
  if (real) {
    out.real.resize(count);
  } else {
    out.whole.resize(count);
  }
  switch (layer.kind) {
    case Kind::gather:
      gather(layer, in, out);
      break;
    case Kind::elementwise:
      elementwise(layer, in, out);
      break;
    case Kind::unary:
      for (std::size_t i = 0; i < count; ++i) {
        out.real[i] = applied(static_cast<UnaryOperation>(layer.operation[0]), in[0]->real[i]);
      }
      break;
    case Kind::activation:
      for (std::size_t i = 0; i < count; ++i) {
        out.real[i] = activated(static_cast<ActivationType>(layer.operation[0]), in[0]->real[i]);
      }
      break;
    case Kind::matrix_multiply:
      matrix_multiply(layer, in, out, tf32);
      break;
    case Kind::reduce:
      reduce(layer, in, out);
      break;
    case Kind::select:
      select(in, out);
      break;
    case Kind::cast: {
      const bool from_real = is_real(in[0]->form.type);
      for (std::size_t i = 0; i < count; ++i) {
        if (real) {
          out.real[i] = from_real ? in[0]->real[i] : static_cast<float>(in[0]->whole[i]);
        } else {
          out.whole[i] = from_real ? static_cast<std::int32_t>(in[0]->real[i]) : in[0]->whole[i];
        }
      }
      break;
    }
    case Kind::normalization:
      normalize(layer, in, out);
      break;
    case Kind::attention:
      attend(in, out, tf32);
      break;
    case Kind::constant:
    case Kind::shuffle:
      break;
  }
  round_all(out);
  return out;
}

}  // namespace

float rounded(DataType type, float x) {
  if (type == DataType::kHALF) return static_cast<float>(static_cast<_Float16>(x));
  if (type == DataType::kBF16) return to_bfloat16(x);
  return x;
}

Value read_value(const Form& form, const void* from) {
  Value value{form, {}, {}};
  const auto count = static_cast<std::size_t>(volume(form.dims));
  const auto* bytes = static_cast<const unsigned char*>(from);
  if (is_real(form.type))
    value.real.resize(count);
  else
    value.whole.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char* at = bytes + i * bytes_of(form.type);
    if (form.type == DataType::kFLOAT) {
      std::memcpy(&value.real[i], at, 4);
    } else if (form.type == DataType::kHALF) {
      _Float16 half;
      std::memcpy(&half, at, 2);
      value.real[i] = static_cast<float>(half);
    } else if (form.type == DataType::kBF16) {
      std::uint16_t bits;
      std::memcpy(&bits, at, 2);
      value.real[i] = std::bit_cast<float>(std::uint32_t{bits} << 16);
    } else if (form.type == DataType::kINT32) {
      std::memcpy(&value.whole[i], at, 4);
    } else {
      value.whole[i] = *at;
    }
  }
  return value;
}

void write_value(const Value& value, void* to) {
  if (value.form.type == DataType::kFLOAT) {
    std::memcpy(to, value.real.data(), value.real.size() * sizeof(float));
  } else {
    fail("TensorRT: the emulated device has outputs of type Float only");
  }
}

Value run_graph(const Graph& graph, const std::map<int, Value>& inputs,
                const std::map<int, std::shared_ptr<const Value>>& constants) {
  const std::size_t count = graph.tensors.size();
  std::vector<Form> forms(count);
  std::vector<Value> made(count);
  std::vector<const Value*> values(count, nullptr);
  for (const auto& [tensor, value] : inputs) {
    forms[static_cast<std::size_t>(tensor)] = value.form;
    values[static_cast<std::size_t>(tensor)] = &value;
  }
  for (const auto& [tensor, value] : constants) {
    forms[static_cast<std::size_t>(tensor)] = value->form;
    values[static_cast<std::size_t>(tensor)] = value.get();
  }
  const std::string why = infer_all(graph, forms);
  if (!why.empty()) fail("TensorRT: at run time, %s", why.c_str());

  std::vector<std::size_t> last_use(count, 0);
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (int input : graph.layers[i].inputs) last_use[static_cast<std::size_t>(input)] = i;
  }
  last_use[static_cast<std::size_t>(graph.outputs[0])] = graph.layers.size();
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    if (layer.kind == Kind::constant) continue;
    Inputs in;
    for (int input : layer.inputs) in.push_back(values[static_cast<std::size_t>(input)]);
    const auto output = static_cast<std::size_t>(layer.output);
    made[output] = run_layer(layer, in, forms[output], graph.tf32);
    values[output] = &made[output];
    for (int input : layer.inputs) {
      if (last_use[static_cast<std::size_t>(input)] == i)
        made[static_cast<std::size_t>(input)] = {};
    }
  }
  return std::move(made[static_cast<std::size_t>(graph.outputs[0])]);
}

}  // namespace emulator::tensorrt
