#include "host/run/report/embedding_map.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "host/data/item_titles.h"
#include "host/eval/tsne.h"
#include "host/run/report/drawn_rows.h"
#include "host/run/review_words.h"
#include "host/signals/evidence.h"

namespace cfaa {
namespace {

constexpr std::size_t kWords = 5;

std::vector<int64_t> all_rows(const IdList& ids) {
  std::vector<int64_t> rows(static_cast<std::size_t>(ids.size()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

// The terms of the largest weights, joined.
std::string top_words(const SparseRows& vectors, int64_t row,
                      const std::vector<std::string>& terms) {
  const auto columns = vectors.columns_of(row);
  const auto values = vectors.values_of(row);
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  std::string words;
  for (std::size_t i = 0; i < std::min(kWords, order.size()); ++i) {
    words += (i > 0 ? ", " : "") + terms[static_cast<std::size_t>(columns[order[i]])];
  }
  return words;
}

std::string first_sentence(const ReviewWords& words, const Domain& domain, std::size_t side,
                           int64_t row) {
  if (side == kItem) return words.of_item(static_cast<int32_t>(row));
  const std::vector<int32_t>& users = domain.train.user;
  const auto first = std::lower_bound(users.begin(), users.end(), static_cast<int32_t>(row));
  if (first == users.end() || *first != row) return "";
  const auto at = static_cast<std::size_t>(first - users.begin());
  return words.of(*first, domain.train.item[at]);
}

}  // namespace

std::vector<MapSample> draw_map_samples(Context& context, const Domain& source,
                                        const Domain& target, int64_t most) {
  const std::array<const Domain*, 2> domains = {&source, &target};
  std::vector<MapSample> samples(2);
  samples[kUser].side = "users";
  samples[kItem].side = "items";
  const bool texts = std::filesystem::exists(source.text_path(Split::train)) &&
                     std::filesystem::exists(target.text_path(Split::train));
  ReviewedDomains reviewed;
  if (texts) reviewed = read_reviewed_domains(context.threads(), domains);
  for (const std::size_t which : {kSource, kTarget}) {
    const Domain& domain = *domains[which];
    TermVectors vectors;
    if (texts) {
      vectors = make_term_vectors(
          context.threads(), reviewed.domains[which].terms, std::ssize(reviewed.terms),
          {domain.users.size(), domain.items.size(), domain.train.user, domain.train.item, {}});
    }
    const ReviewWords words(domain);
    const ItemTitles titles(domain);
    const KeyedDraw draw("map", domain.name, 0);
    for (const std::size_t side : {kUser, kItem}) {
      MapSample& sample = samples[side];
      const IdList& ids = side == kUser ? domain.users : domain.items;
      sample.rows[which] = drawn_rows(all_rows(ids), ids, draw, most);
      for (const int64_t row : sample.rows[which]) {
        MapSample::Member& member = sample.members.emplace_back();
        member.id = std::string(ids[row]);
        if (side == kItem) member.title = std::string(titles[row]);
        if (texts) {
          const SparseRows& of = side == kUser ? vectors.users : vectors.items;
          member.words = top_words(of, row, reviewed.terms);
        }
        member.sentence = first_sentence(words, domain, side, row);
      }
    }
  }
  return samples;
}

std::vector<float> map_embeddings(Context& context, const PerDomain<DomainEmbeddings>& embeddings,
                                  std::size_t side, const MapSample& sample) {
  std::vector<float> rows;
  for (const std::size_t which : {kSource, kTarget}) {
    const MatrixView<const float> all = embeddings[which].view(side);
    for (const int64_t row : sample.rows[which]) {
      rows.insert(rows.end(), all.data + row * all.shape[1], all.data + (row + 1) * all.shape[1]);
    }
  }
  return tsne(context, {rows.data(), {std::ssize(sample.members), embeddings[kTarget].dim}}).points;
}

}  // namespace cfaa
