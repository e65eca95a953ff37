#include "host/signals/evidence.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "host/core/error.h"
#include "host/data/review_text.h"

namespace cfaa {
namespace {

// 1 at (user, item) of the chosen rows; rows of a split are sorted by (user, item).
template <class Chosen>
SparseRows ones(const ReviewedDomain& reviewed, Chosen chosen) {
  const SplitRows& rows = reviewed.domain->train;
  SparseRows matrix;
  matrix.columns = reviewed.items();
  matrix.offset.assign(static_cast<std::size_t>(reviewed.users()) + 1, 0);
  for (std::size_t row = 0; row < rows.user.size(); ++row) {
    if (!chosen(row)) continue;
    ++matrix.offset[static_cast<std::size_t>(rows.user[row]) + 1];
    matrix.column.push_back(rows.item[row]);
  }
  for (std::size_t u = 1; u < matrix.offset.size(); ++u) matrix.offset[u] += matrix.offset[u - 1];
  matrix.value.assign(matrix.column.size(), 1.0f);
  return matrix;
}

// Means of the items' sentences, centred over the items that have any, of norm 1.
std::vector<float> item_vectors(const ReviewedDomain& reviewed, std::span<const char> used) {
  const ReviewVectorSums& vectors = reviewed.vectors;
  const auto width = static_cast<std::size_t>(vectors.width);
  const auto items = static_cast<std::size_t>(reviewed.items());
  std::vector<double> sum(items * width);
  std::vector<int64_t> sentences(items);
  const SplitRows& rows = reviewed.domain->train;
  for (std::size_t row = 0; row < rows.item.size(); ++row) {
    if (!used.empty() && used[row] == 0) continue;
    const auto item = static_cast<std::size_t>(rows.item[row]);
    sentences[item] += vectors.counts[row];
    for (std::size_t q = 0; q < width; ++q) sum[item * width + q] += vectors.sums[row * width + q];
  }
  std::vector<double> mean(width);
  double with_text = 0;
  for (std::size_t i = 0; i < items; ++i) {
    if (sentences[i] == 0) continue;
    ++with_text;
    for (std::size_t q = 0; q < width; ++q) {
      sum[i * width + q] /= static_cast<double>(sentences[i]);
      mean[q] += sum[i * width + q];
    }
  }
  std::vector<float> result(sum.size());
  for (std::size_t i = 0; i < items; ++i) {
    if (sentences[i] == 0) continue;
    double square = 0;
    for (std::size_t q = 0; q < width; ++q) {
      sum[i * width + q] -= mean[q] / with_text;
      square += sum[i * width + q] * sum[i * width + q];
    }
    if (square == 0) continue;
    for (std::size_t q = 0; q < width; ++q) {
      result[i * width + q] = static_cast<float>(sum[i * width + q] / std::sqrt(square));
    }
  }
  return result;
}

}  // namespace

ReviewedDomains read_reviewed_domains(ThreadPool& threads, std::span<const Domain* const> domains) {
  std::vector<std::unique_ptr<ReviewTextFile>> files;
  std::vector<ReviewTexts> texts;
  for (const Domain* domain : domains) {
    const auto path = domain->text_path(Split::train);
    files.push_back(std::make_unique<ReviewTextFile>(path));
    const ReviewTextFile* file = files.back().get();
    if (file->count() != domain->train.size()) {
      throw Error(fmt::format("{}: {} texts for {} training interactions; run prepare again",
                              path.string(), file->count(), domain->train.size()));
    }
    texts.push_back({file->count(), [file](int64_t row) { return file->text(row); }});
  }
  ReviewVocabulary read = read_review_terms(threads, texts);
  ReviewedDomains reviewed;
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const auto vocabulary = static_cast<int64_t>(read.terms.size());
    reviewed.domains.push_back({domains[d], std::move(read.domains[d]), vocabulary, {}});
  }
  reviewed.terms = std::move(read.terms);
  return reviewed;
}

Evidence gather_evidence(ThreadPool& threads, const ReviewedDomain& reviewed,
                         std::span<const char> used) {
  const SplitRows& rows = reviewed.domain->train;
  const auto counts = [used](std::size_t row) { return used.empty() || used[row] != 0; };
  Evidence evidence;
  evidence.known =
      ones(reviewed, [&](std::size_t row) { return counts(row) && rows.has_label(row); });
  evidence.liked =
      ones(reviewed, [&](std::size_t row) { return counts(row) && rows.label[row] > 0; });
  evidence.likers = transpose(evidence.liked);
  evidence.text =
      make_term_vectors(threads, reviewed.terms, reviewed.vocabulary,
                        {reviewed.users(), reviewed.items(), rows.user, rows.item, used});
  evidence.width = reviewed.vectors.width;
  if (evidence.width > 0) evidence.item_vectors = item_vectors(reviewed, used);
  return evidence;
}

}  // namespace cfaa
