#include "host/io/parquet.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "host/core/error.h"
#include "host/io/atomic_file.h"

#ifdef CFAA_HAS_ARROW
#include <arrow/api.h>
#include <arrow/io/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#endif

namespace cfaa {

bool is_parquet(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  char head[4] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof(head));
  return std::memcmp(head, "PAR1", sizeof(head)) == 0;
}

#ifdef CFAA_HAS_ARROW

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kBatchRows = 1 << 14;  // some megabytes of reviews

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(fmt::format("{}: {}", path, reason));
}

void check(const arrow::Status& status, const std::string& path) {
  if (!status.ok()) fail(path, status.message());
}

template <class T>
T check(arrow::Result<T> result, const std::string& path) {
  check(result.status(), path);
  return std::move(result).ValueOrDie();
}

// Runs what may throw Parquet's own exceptions.
template <class Work>
auto guarded(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const parquet::ParquetException& error) {
    fail(path, error.what());
  }
}

double spelled(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  return copy.empty() || *end != '\0' ? kNone : value;
}

double seconds(int64_t value, arrow::TimeUnit::type unit) {
  const auto v = static_cast<double>(value);
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return v;
    case arrow::TimeUnit::MILLI:
      return v / 1e3;
    case arrow::TimeUnit::MICRO:
      return v / 1e6;
    case arrow::TimeUnit::NANO:
      return v / 1e9;
  }
  return kNone;
}

bool is_readable(const arrow::DataType& type) {
  using arrow::Type;
  if (type.id() == Type::DICTIONARY) {
    return is_readable(*static_cast<const arrow::DictionaryType&>(type).value_type());
  }
  return arrow::is_base_binary_like(type.id()) || arrow::is_binary_view_like(type.id()) ||
         arrow::is_integer(type.id()) || type.id() == Type::FLOAT || type.id() == Type::DOUBLE ||
         type.id() == Type::BOOL || arrow::is_decimal(type.id()) || type.id() == Type::TIMESTAMP ||
         type.id() == Type::DATE32 || type.id() == Type::DATE64 || type.id() == Type::NA;
}

template <class Array>
std::string_view view_of(const arrow::Array& array, int64_t row) {
  return static_cast<const Array&>(array).GetView(row);
}

// The value of a whole number of any width; false where the array holds no such.
template <class Take>
bool take_whole(const arrow::Array& array, int64_t row, const Take& take) {
  using arrow::Type;
  const auto value = [&]<class Array>(const Array&) {
    take(static_cast<const Array&>(array).Value(row));
    return true;
  };
  switch (array.type_id()) {
    case Type::INT8:
      return value(static_cast<const arrow::Int8Array&>(array));
    case Type::INT16:
      return value(static_cast<const arrow::Int16Array&>(array));
    case Type::INT32:
      return value(static_cast<const arrow::Int32Array&>(array));
    case Type::INT64:
      return value(static_cast<const arrow::Int64Array&>(array));
    case Type::UINT8:
      return value(static_cast<const arrow::UInt8Array&>(array));
    case Type::UINT16:
      return value(static_cast<const arrow::UInt16Array&>(array));
    case Type::UINT32:
      return value(static_cast<const arrow::UInt32Array&>(array));
    case Type::UINT64:
      return value(static_cast<const arrow::UInt64Array&>(array));
    default:
      return false;
  }
}

bool take_string(const arrow::Array& array, int64_t row, std::string_view& text) {
  using arrow::Type;
  switch (array.type_id()) {
    case Type::STRING:
    case Type::BINARY:
      text = view_of<arrow::BinaryArray>(array, row);
      return true;
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      text = view_of<arrow::LargeBinaryArray>(array, row);
      return true;
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW:
      text = view_of<arrow::BinaryViewArray>(array, row);
      return true;
    default:
      return false;
  }
}

// The array and the place that a value of a dictionary stands at; others stand where they are.
const arrow::Array& dictionary_value(const arrow::Array& array, int64_t& row) {
  if (array.type_id() != arrow::Type::DICTIONARY) return array;
  const auto& indices = static_cast<const arrow::DictionaryArray&>(array);
  row = indices.GetValueIndex(row);
  return *indices.dictionary();
}

class Batch : public ParquetRows {
 public:
  // `place`: of each column asked for, in the batch; -1: it is always empty.
  Batch(std::shared_ptr<arrow::RecordBatch> batch, const std::vector<int>& place)
      : batch_(std::move(batch)) {
    for (const int p : place) columns_.push_back(p < 0 ? nullptr : batch_->column(p).get());
  }

  int64_t count() const override { return batch_->num_rows(); }

  std::string_view text(std::size_t column, int64_t row, std::string& storage) const override {
    if (is_absent(column, row)) return {};
    const arrow::Array& array = dictionary_value(*columns_[column], row);
    std::string_view text;
    if (array.IsNull(row) || take_string(array, row, text)) return text;
    if (!take_whole(array, row, [&](auto value) { storage = fmt::format("{}", value); })) {
      const double value = number(column, row);
      storage = std::isnan(value) ? "" : fmt::format("{}", value);
    }
    return storage;
  }

  double number(std::size_t column, int64_t row) const override {
    using arrow::Type;
    if (is_absent(column, row)) return kNone;
    const arrow::Array& array = dictionary_value(*columns_[column], row);
    if (array.IsNull(row)) return kNone;
    double value = kNone;
    std::string_view text;
    if (take_whole(array, row, [&](auto whole) { value = static_cast<double>(whole); })) {
      return value;
    }
    if (take_string(array, row, text)) return spelled(text);
    switch (array.type_id()) {
      case Type::FLOAT:
        return static_cast<const arrow::FloatArray&>(array).Value(row);
      case Type::DOUBLE:
        return static_cast<const arrow::DoubleArray&>(array).Value(row);
      case Type::BOOL:
        return static_cast<const arrow::BooleanArray&>(array).Value(row) ? 1 : 0;
      case Type::TIMESTAMP: {
        const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
        return seconds(static_cast<const arrow::TimestampArray&>(array).Value(row), type.unit());
      }
      case Type::DATE32:
        return 86400.0 * static_cast<const arrow::Date32Array&>(array).Value(row);
      case Type::DATE64:
        return static_cast<double>(static_cast<const arrow::Date64Array&>(array).Value(row)) / 1e3;
      default: {
        const auto scalar = array.GetScalar(row);
        return scalar.ok() ? spelled((*scalar)->ToString()) : kNone;
      }
    }
  }

 private:
  bool is_absent(std::size_t column, int64_t row) const {
    return columns_[column] == nullptr || columns_[column]->IsNull(row);
  }

  std::shared_ptr<arrow::RecordBatch> batch_;
  std::vector<const arrow::Array*> columns_;
};

// What Arrow writes goes into a file that appears whole or not at all.
class AtomicStream : public arrow::io::OutputStream {
 public:
  explicit AtomicStream(const std::string& path) : file_(path) {}

  arrow::Status Write(const void* bytes, int64_t count) override {
    file_.write(bytes, static_cast<std::size_t>(count));
    written_ += count;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return written_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  int64_t written_ = 0;
  bool closed_ = false;
};

}  // namespace

struct ParquetReader::State {
  std::string path;
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  std::shared_ptr<parquet::FileMetaData> metadata;
  std::shared_ptr<arrow::Schema> schema;

  // A reader of one's own: Arrow's are for one thread.
  std::unique_ptr<parquet::arrow::FileReader> open() const {
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    properties.enable_buffered_stream();  // of a column a page at a time, not the whole group
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_pre_buffer(false);
    arrow_properties.set_batch_size(kBatchRows);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(file, properties, metadata), path);
    builder.properties(arrow_properties);
    return check(builder.Build(), path);
  }
};

bool has_parquet() {
  return true;
}

void require_parquet(const std::string&) {}

ParquetReader::ParquetReader(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  guarded(path, [&] {
    s.file = check(arrow::io::MemoryMappedFile::Open(path, arrow::io::FileMode::READ), path);
    s.metadata = parquet::ReadMetaData(s.file);
    check(s.open()->GetSchema(&s.schema), path);
  });
}

ParquetReader::~ParquetReader() = default;
ParquetReader::ParquetReader(ParquetReader&&) noexcept = default;

std::vector<std::string> ParquetReader::columns() const {
  std::vector<std::string> names;
  for (const auto& field : state_->schema->fields()) {
    if (is_readable(*field->type())) names.push_back(field->name());
  }
  return names;
}

bool ParquetReader::holds_times(const std::string& column) const {
  using arrow::Type;
  const auto field = state_->schema->GetFieldByName(column);
  const auto id = field ? field->type()->id() : Type::NA;
  return id == Type::TIMESTAMP || id == Type::DATE32 || id == Type::DATE64;
}

int64_t ParquetReader::groups() const {
  return state_->metadata->num_row_groups();
}

int64_t ParquetReader::rows() const {
  return state_->metadata->num_rows();
}

uint64_t ParquetReader::bytes(int64_t group) const {
  const auto part = state_->metadata->RowGroup(static_cast<int>(group));
  int64_t bytes = 0;
  for (int c = 0; c < part->num_columns(); ++c) {
    bytes += part->ColumnChunk(c)->total_compressed_size();
  }
  return static_cast<uint64_t>(bytes);
}

void ParquetReader::read(int64_t group, const std::vector<std::string>& columns,
                         const std::function<void(const ParquetRows&)>& take) const {
  const State& s = *state_;
  guarded(s.path, [&] {
    // Leaves of the columns asked for, each once, in the order of the file.
    std::vector<int> leaves;
    for (int leaf = 0; leaf < s.metadata->num_columns(); ++leaf) {
      const auto node = s.metadata->schema()->GetColumnRoot(leaf);
      if (std::find(columns.begin(), columns.end(), node->name()) != columns.end()) {
        leaves.push_back(leaf);
      }
    }
    const auto reader = s.open();
    const auto batches =
        check(reader->GetRecordBatchReader({static_cast<int>(group)}, leaves), s.path);
    std::vector<int> place;
    for (const std::string& name : columns) {
      place.push_back(name.empty() ? -1 : batches->schema()->GetFieldIndex(name));
    }
    for (;;) {
      const std::shared_ptr<arrow::RecordBatch> batch = check(batches->Next(), s.path);
      if (!batch) return;
      take(Batch(batch, place));
    }
  });
}

void write_parquet(const std::string& path, int64_t rows, const std::vector<ParquetColumn>& table) {
  guarded(path, [&] {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const ParquetColumn& column : table) {
      std::shared_ptr<arrow::Array> array;
      if (column.text) {
        arrow::StringBuilder builder;
        for (int64_t r = 0; r < rows; ++r) check(builder.Append(column.text(r)), path);
        check(builder.Finish(&array), path);
      } else {
        // Read where they lie: Arrow keeps no copy.
        const auto values = std::make_shared<arrow::FloatArray>(
            rows * column.width,
            arrow::Buffer::Wrap(column.vectors, static_cast<std::size_t>(rows * column.width)));
        const auto type =
            arrow::fixed_size_list(arrow::field("item", arrow::float32(), /*nullable=*/false),
                                   static_cast<int32_t>(column.width));
        array = std::make_shared<arrow::FixedSizeListArray>(type, rows, values);
      }
      fields.push_back(arrow::field(column.name, array->type(), /*nullable=*/false));
      arrays.push_back(array);
    }
    const auto stream = std::make_shared<AtomicStream>(path);
    constexpr int64_t kGroupRows = 1 << 16;
    const auto properties =
        parquet::WriterProperties::Builder().disable_dictionary()->created_by("cfaa_gpu")->build();
    check(parquet::arrow::WriteTable(
              *arrow::Table::Make(arrow::schema(fields), arrays, rows),
              arrow::default_memory_pool(), stream, kGroupRows, properties,
              parquet::ArrowWriterProperties::Builder().store_schema()->build()),
          path);
    stream->commit();
  });
}

#else

void require_parquet(const std::string& path) {
  throw Error(path +
              ": Parquet needs Arrow, which this build is without; build with -DCFAA_ARROW=ON "
              "(tools/setup arrow), or use another format");
}

struct ParquetReader::State {};

bool has_parquet() {
  return false;
}

ParquetReader::ParquetReader(const std::string& path) {
  require_parquet(path);
}

ParquetReader::~ParquetReader() = default;
ParquetReader::ParquetReader(ParquetReader&&) noexcept = default;

std::vector<std::string> ParquetReader::columns() const {
  return {};
}

bool ParquetReader::holds_times(const std::string&) const {
  return false;
}

int64_t ParquetReader::groups() const {
  return 0;
}

int64_t ParquetReader::rows() const {
  return 0;
}

uint64_t ParquetReader::bytes(int64_t) const {
  return 0;
}

void ParquetReader::read(int64_t, const std::vector<std::string>&,
                         const std::function<void(const ParquetRows&)>&) const {}

void write_parquet(const std::string& path, int64_t, const std::vector<ParquetColumn>&) {
  require_parquet(path);
}

#endif

}  // namespace cfaa
