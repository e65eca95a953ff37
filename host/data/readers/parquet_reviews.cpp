#include "host/data/readers/parquet_reviews.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/io/content_hash.h"

namespace cfaa {
namespace {

enum Place : std::size_t { kUser, kItem, kRating, kText, kTime, kTitle, kPlaces };

std::shared_ptr<const MappedInput> map(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat opened {};
  std::shared_ptr<const MappedInput> input;
  if (descriptor >= 0 && ::fstat(descriptor, &opened) == 0) {
    input = MappedInput::map(descriptor, opened, path);
  }
  if (descriptor >= 0) ::close(descriptor);
  return input;
}

}  // namespace

ParquetReviews::ParquetReviews(const std::string& path, const ColumnChoice& choice,
                               const PrepareOptions& options)
    : file_(map(path)),
      path_(path),
      reader_(path),
      chosen_(choose_columns(reader_.columns(), choice, path)),
      invalid_(options.invalid_utf8) {
  // A timestamp knows its unit and comes in seconds, whatever the unit of plain numbers is.
  const bool known = reader_.holds_times(chosen_.columns.time);
  if (known && options.time_unit == TimeUnit::milliseconds) time_scale_ = 1000;
}

int64_t ParquetReviews::parse(int64_t group, RawReviewSink& sink) const {
  const ColumnChoice& c = chosen_.columns;
  int64_t row = 0;  // of the group
  std::string storage[kPlaces], repaired[kPlaces];
  reader_.read(group, {c.user, c.item, c.rating, c.text, c.time, c.title},
               [&](const ParquetRows& rows) {
                 for (int64_t r = 0; r < rows.count(); ++r, ++row) {
                   RawReview review;
                   bool readable = true;
                   const auto text = [&](Place place) {
                     std::string_view value = rows.text(place, r, storage[place]);
                     readable = readable && repair_utf8(value, invalid_, repaired[place]);
                     return value;
                   };
                   review.user = text(kUser);
                   review.item = text(kItem);
                   review.text = text(kText);
                   review.title = text(kTitle);
                   review.rating = rows.number(kRating, r);
                   review.time = rows.number(kTime, r) * time_scale_;
                   if (readable) {
                     sink.accept(review, row);
                   } else {
                     sink.reject(row, kNotUtf8);
                   }
                 }
               });
  return row;
}

FileIdentity ParquetReviews::identity() const {
  const MappedFile whole(path_);
  return {path_, whole.bytes().size(), content_hash(whole), Compression::none};
}

}  // namespace cfaa
