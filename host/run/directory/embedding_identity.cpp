#include "host/run/directory/embedding_identity.h"

#include <fmt/format.h>

#include <vector>

#include "host/embed/review_sums.h"
#include "host/embed/tokenized_reviews.h"
#include "host/io/content_hash.h"

namespace cfaa {

EmbeddingIdentity embedding_identity(const Dataset& data) {
  EmbeddingIdentity identity;
  for (const Domain* domain : {&data.source, &data.target}) {
    for (const auto& [key, value] : read_embed_description(*domain).settings) {
      identity[domain->name + " " + key] = shown(value);
    }
    for (const char* name : {"review_sums.npy", "review_counts.npy"}) {
      identity[domain->name + " " + name] =
          content_hash(MappedFile((domain->path / name).string()));
    }
  }
  return identity;
}

EmbeddingIdentity embedding_identity(const Dataset& data, const ModelOptions& model) {
  if (model.reads_words()) return {{"words", word_model_hash(model.words_model)}};
  if (!model.reads_vectors()) return {};
  EmbeddingIdentity identity = embedding_identity(data);
  if (model.review_sentences == ReviewSentences::all) return identity;
  for (const Domain* domain : {&data.source, &data.target}) {
    for (const char* name : {"user_summary_sums.npy", "item_summary_sums.npy"}) {
      identity[domain->name + " " + name] =
          content_hash(MappedFile((domain->path / name).string()));
    }
  }
  return identity;
}

std::string embedding_difference(const EmbeddingIdentity& trained, const EmbeddingIdentity& now) {
  if (trained.empty()) return "";
  const auto value = [](const EmbeddingIdentity& of, const std::string& key) {
    const auto found = of.find(key);
    return found == of.end() ? std::string("none") : found->second;
  };
  // Settings explain a difference of the arrays, so hashes are named only where all settings agree.
  std::vector<std::string> settings, arrays;
  EmbeddingIdentity all = trained;
  all.insert(now.begin(), now.end());
  for (const auto& [key, unused] : all) {
    const std::string before = value(trained, key), after = value(now, key);
    if (before == after) continue;
    if (key.ends_with(".npy")) {
      arrays.push_back(key + " has other contents");
    } else {
      settings.push_back(fmt::format("{} was {} and is {}", key, before, after));
    }
  }
  return fmt::format("{}", fmt::join(settings.empty() ? arrays : settings, ", "));
}

}  // namespace cfaa
