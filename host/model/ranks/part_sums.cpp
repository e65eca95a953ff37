#include "host/model/ranks/part_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/ops/add_scaled.h"

namespace cfaa {
namespace {

// Some rows of a table and their gradients, in host memory.
template <class T>
struct Rows {
  VectorView<const int32_t> row;  // ascending, no repeats
  MatrixView<T> gradient;         // one row each; rows may be padded
};

template <class T>
Rows<T> rows_of(const TableGradient<T>& table) {
  const int64_t count = table.touched.count.data[0];
  return {{table.touched.row.data, {count}},
          {table.gradient.data, {count, table.gradient.cols()}, table.gradient.stride}};
}

// The rows of either; what both have is a + b.
template <class T>
Rows<T> sum_of(Context& context, const Rows<T>& a, const Rows<T>& b) {
  Arena& arena = context.scratch();
  const int64_t most = a.row.size() + b.row.size(), columns = a.gradient.cols();
  const auto row = arena.take<int32_t, 1>({most});
  const auto from = arena.take<int32_t, 2>({most, 2});  // places in a and b; -1: not there
  int64_t count = 0;
  for (int64_t i = 0, j = 0; i < a.row.size() || j < b.row.size(); ++count) {
    const bool in_a = i < a.row.size() && (j == b.row.size() || a.row.data[i] <= b.row.data[j]);
    const bool in_b = j < b.row.size() && (i == a.row.size() || b.row.data[j] <= a.row.data[i]);
    row.data[count] = in_a ? a.row.data[i] : b.row.data[j];
    from.data[2 * count] = in_a ? static_cast<int32_t>(i++) : -1;
    from.data[2 * count + 1] = in_b ? static_cast<int32_t>(j++) : -1;
  }
  const auto gradient = arena.take<T, 2>({count, columns});
  context.threads().parallel_for(count, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int32_t i = from.data[2 * r], j = from.data[2 * r + 1];
      const T* x = a.gradient.data + std::max(i, 0) * a.gradient.stride[0];
      const T* y = b.gradient.data + std::max(j, 0) * b.gradient.stride[0];
      T* sum = gradient.data + r * columns;
      if (i < 0 || j < 0) {
        std::copy_n(i < 0 ? y : x, columns, sum);
      } else {
        for (int64_t c = 0; c < columns; ++c) sum[c] = x[c] + y[c];
      }
    }
  });
  return {{row.data, {count}}, gradient};
}

// Along the binary tree; neighbours are added first.
template <class T>
Rows<T> sum_of(Context& context, std::vector<Rows<T>> all) {
  for (std::size_t apart = 1; apart < all.size(); apart *= 2) {
    for (std::size_t i = 0; i + apart < all.size(); i += 2 * apart) {
      all[i] = sum_of(context, all[i], all[i + apart]);
    }
  }
  return all[0];
}

template <class T>
MatrixView<T> as_row(VectorView<T> vector) {
  return {vector.data, {1, vector.size()}};
}

template <class T>
void sum_along_tree(Context& context, std::span<const VectorView<T>> all) {
  for (std::size_t apart = 1; apart < all.size(); apart *= 2) {
    for (std::size_t i = 0; i + apart < all.size(); i += 2 * apart) {
      add_scaled<T>(context, nullptr, as_row(all[i + apart]), as_row(all[i]));
    }
  }
}

// The rows of some tables in a message of bytes, which has room for as many as any rank has.
template <class T>
class Message {
 public:
  // `most`: rows of each table; `columns` likewise.
  Message(std::span<const int64_t> most, std::span<const int64_t> columns) {
    for (std::size_t t = 0; t < most.size(); ++t) {
      const std::size_t rows = bytes_;
      bytes_ += aligned(static_cast<std::size_t>(most[t]) * sizeof(int32_t));
      places_.push_back({rows, bytes_, columns[t]});
      bytes_ += aligned(static_cast<std::size_t>(most[t] * columns[t]) * sizeof(T));
    }
  }

  std::size_t bytes() const { return bytes_; }
  void put(char* message, std::size_t table, const Rows<T>& rows) const {
    const Rows<T> to = at(message, table, rows.row.size());
    std::copy_n(rows.row.data, rows.row.size(),
                reinterpret_cast<int32_t*>(message + places_[table].rows));
    for (int64_t r = 0; r < rows.row.size(); ++r) {
      std::copy_n(rows.gradient.data + r * rows.gradient.stride[0], rows.gradient.cols(),
                  to.gradient.data + r * to.gradient.stride[0]);
    }
  }
  // The `count` rows of a table.
  Rows<T> at(char* message, std::size_t table, int64_t count) const {
    const Place& place = places_[table];
    return {{reinterpret_cast<const int32_t*>(message + place.rows), {count}},
            {reinterpret_cast<T*>(message + place.gradient), {count, place.columns}}};
  }

 private:
  struct Place {
    std::size_t rows, gradient;
    int64_t columns;
  };
  static std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  std::vector<Place> places_;
  std::size_t bytes_ = 0;
};

// From each table's rows of this rank to those of every rank, in the ranks' order.
template <class T>
void exchange(Context& context, Group& group, std::vector<std::vector<Rows<T>>>& tables) {
  const std::size_t ranks = static_cast<std::size_t>(group.size()), count = tables.size();
  Arena& arena = context.scratch();
  const auto mine = arena.take<int64_t, 1>({static_cast<int64_t>(count)});
  const auto counts = arena.take<int64_t, 1>({static_cast<int64_t>(ranks * count)});
  for (std::size_t t = 0; t < count; ++t) mine.data[t] = tables[t][0].row.size();
  group.all_gather(context, mine.data, counts.data, count * sizeof(int64_t));
  std::vector<int64_t> most(count, 0), columns;
  for (std::size_t t = 0; t < count; ++t) {
    columns.push_back(tables[t][0].gradient.cols());
    for (std::size_t r = 0; r < ranks; ++r) {
      most[t] = std::max(most[t], counts.data[r * count + t]);
    }
  }

  const Message<T> layout(most, columns);
  auto* const send = static_cast<char*>(arena.take_bytes(layout.bytes()));
  auto* const received = static_cast<char*>(arena.take_bytes(ranks * layout.bytes()));
  for (std::size_t t = 0; t < count; ++t) layout.put(send, t, tables[t][0]);
  group.all_gather(context, send, received, layout.bytes());
  for (std::size_t t = 0; t < count; ++t) {
    tables[t].clear();
    for (std::size_t r = 0; r < ranks; ++r) {
      tables[t].push_back(layout.at(received + r * layout.bytes(), t, counts.data[r * count + t]));
    }
  }
}

}  // namespace

template <class T>
PartSums<T>::PartSums(Context& context, Group& group, int64_t parts)
    : group_(group), parts_(parts) {
  if (!std::has_single_bit(static_cast<uint64_t>(parts))) {
    throw Error(fmt::format("train.parts is {}; it must be a power of two", parts));
  }
  if (parts % group.size() != 0) {
    throw Error(fmt::format(
        "train.parts is {}, and there are {} ranks: each computes as many parts, so start 1, 2, 4 "
        "... of at most {} ranks, or set train.parts to {} or a multiple",
        parts, group.size(), parts, std::bit_ceil(static_cast<uint64_t>(group.size()))));
  }
  if (parts > 1 && context.device() != DeviceKind::cpu) {
    throw Error(fmt::format(
        "train.parts is {}, and several parts are trained on the CPU so far; use --device cpu, or "
        "set train.parts to 1",
        parts));
  }
}

template <class T>
template <class U>
void PartSums<T>::gather(Context& context, VectorView<U> all) const {
  if (group_.size() == 1) return;
  const Arena::Scope scope(context.scratch());
  const int64_t count = all.size() / group_.size();
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(U);
  const auto mine = context.scratch().template take<U, 1>({count});
  context.runtime().copy(mine.data, all.data + group_.rank() * count, bytes);
  group_.all_gather(context, mine.data, all.data, bytes);
}

template <class T>
std::vector<double> PartSums<T>::gather_host(Context& context,
                                             const std::vector<double>& own) const {
  if (group_.size() == 1) return own;
  const Arena::Scope scope(context.scratch());
  const auto size = static_cast<int64_t>(own.size());
  const auto all = context.scratch().template take<double, 1>({group_.size() * size});
  context.runtime().copy_from_host(all.data + group_.rank() * size, own.data(),
                                   own.size() * sizeof(double));
  gather(context, all);
  return to_host(context, all);
}

template <class T>
void PartSums<T>::share_pieces(Context& context, VectorView<T> values, View<T, 3> gradients) const {
  if (values.size() == parts_ && parts_ != 2) {
    gather(context, values);
    gather(context, VectorView<T>(gradients.data, {gradients.size()}));
    return;
  }
  CFAA_ASSERT(values.size() == 2);
  for (int64_t i = 0; i < 2 && group_.size() > 1; ++i) {
    const int root = static_cast<int>(rank_of(i * parts_ / 2));
    group_.broadcast(context, values.data + i, sizeof(T), root);
    group_.broadcast(context, gradients[i].data,
                     static_cast<std::size_t>(gradients[i].size()) * sizeof(T), root);
  }
}

template <class T>
void PartSums<T>::sum(Context& context, std::span<const VectorView<T>> own) const {
  CFAA_ASSERT(static_cast<int64_t>(own.size()) == this->own());
  sum_along_tree(context, own);
  if (group_.size() == 1) return;
  const Arena::Scope scope(context.scratch());
  DeviceRuntime& runtime = context.runtime();
  const int64_t ranks = group_.size(), size = own[0].size(), slice = (size + ranks - 1) / ranks;
  const auto padded = context.scratch().template take<T, 2>({ranks, slice});
  const auto received = context.scratch().template take<T, 2>({ranks, slice});
  const std::size_t bytes = static_cast<std::size_t>(slice) * sizeof(T);
  runtime.fill_zero(padded.data, static_cast<std::size_t>(ranks) * bytes);
  runtime.copy(padded.data, own[0].data, static_cast<std::size_t>(size) * sizeof(T));
  group_.all_to_all(context, padded.data, received.data, bytes);
  std::vector<VectorView<T>> slices;
  for (int64_t r = 0; r < ranks; ++r) slices.push_back({received.data + r * slice, {slice}});
  sum_along_tree<T>(context, slices);
  group_.all_gather(context, received.data, padded.data, bytes);
  runtime.copy(own[0].data, padded.data, static_cast<std::size_t>(size) * sizeof(T));
}

template <class T>
std::vector<TableGradient<T>> PartSums<T>::sum_rows(
    Context& context, const std::vector<std::vector<TableGradient<T>>>& own) const {
  const std::size_t tables = own[0].size();
  std::vector<std::vector<Rows<T>>> of_ranks(tables);
  for (std::size_t t = 0; t < tables; ++t) {
    std::vector<Rows<T>> parts;
    for (const auto& part : own) parts.push_back(rows_of(part[t]));
    of_ranks[t].push_back(sum_of(context, std::move(parts)));
  }
  if (group_.size() > 1 && tables > 0) exchange(context, group_, of_ranks);
  std::vector<TableGradient<T>> sums;
  for (std::size_t t = 0; t < tables; ++t) {
    const Rows<T> rows = sum_of(context, std::move(of_ranks[t]));
    const auto count = context.scratch().template take<int32_t, 1>({1});
    count.data[0] = static_cast<int32_t>(rows.row.size());
    TouchedRows<T> touched;
    touched.count = count;
    touched.row = rows.row;
    sums.push_back({own[0][t].table, touched, rows.gradient});
  }
  return sums;
}

template <class T>
void PartSums<T>::share_fault(Context& context) const {
  Fault& mine = *context.fault_latch();
  for (const Fault& fault : gather_values(context, group_, mine)) {
    if (fault.code == static_cast<int32_t>(FaultCode::none)) continue;
    mine = fault;
    return;
  }
}

#define CFAA_INSTANTIATE(T, U) template void PartSums<T>::gather<U>(Context&, VectorView<U>) const;
CFAA_INSTANTIATE(float, float)
CFAA_INSTANTIATE(float, double)
CFAA_INSTANTIATE(double, double)
#undef CFAA_INSTANTIATE

template class PartSums<float>;
template class PartSums<double>;

}  // namespace cfaa
