#include "host/embed/known_reviews.h"

#include <algorithm>

#include "host/core/error.h"
#include "host/data/review_text.h"
#include "host/embed/resumable_files.h"

namespace cfaa {

namespace fs = std::filesystem;

std::vector<fs::path> embedded_beside(const fs::path& data) {
  const fs::path here = fs::canonical(data);
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(here.parent_path(), ignored)) {
    if (entry.path() == here || !fs::exists(entry.path() / "prepare.json", ignored)) continue;
    if (fs::exists(entry.path() / "source" / "embed.json", ignored) ||
        fs::exists(entry.path() / "target" / "embed.json", ignored)) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

KnownReviews::KnownReviews(const std::vector<fs::path>& directories, const Fields& settings) {
  for (const fs::path& directory : directories) {
    for (const char* name : {"source", "target"}) {
      try {
        add(directory, name, settings);
      } catch (const Error&) {  // stale, damaged, under way: as if it were not there
      }
    }
  }
  std::sort(reviews_.begin(), reviews_.end(),
            [](const Review& a, const Review& b) { return a.text < b.text; });
}

void KnownReviews::add(const fs::path& directory, const char* name, const Fields& settings) {
  if (!fs::exists(directory / name / "embed.json")) return;
  const Domain domain = load_domain(directory, name);
  Fields theirs = read_embed_description(domain).settings;
  for (const char* own : {"dataset", "text"}) theirs.erase(own);
  if (!setting_difference(theirs, settings).empty()) return;
  const ReviewSums sums = load_review_sums(domain);
  const ReviewTextFile texts(domain.text_path(Split::train));
  texts.verify();
  domains_.push_back(sums);
  for (int64_t row = 0; row < texts.count(); ++row) {
    if (sums.count[row] == 0) continue;
    reviews_.push_back({hash_of(texts.text(row)), static_cast<uint32_t>(domains_.size() - 1), row});
  }
}

bool KnownReviews::add_sum(const TextHash& text, int32_t sentences, double* sum) const {
  const auto found =
      std::lower_bound(reviews_.begin(), reviews_.end(), text,
                       [](const Review& r, const TextHash& t) { return r.text < t; });
  if (found == reviews_.end() || found->text != text) return false;
  const ReviewSums& from = domains_[found->domain];
  if (from.count[found->row] != sentences) return false;
  std::vector<float> row(static_cast<std::size_t>(from.width));
  convert(from.dtype,
          from.sum + found->row * from.width * static_cast<int64_t>(size_of(from.dtype)), 1,
          from.width, row.data());
  for (std::size_t i = 0; i < row.size(); ++i) sum[i] += static_cast<double>(row[i]);
  return true;
}

}  // namespace cfaa
