#pragma once

// The words of synthetic reviews. Topics are shared by both domains; what a domain calls its
// things, its slang and its boilerplate are its own.

#include <array>
#include <span>
#include <string_view>

namespace cfaa {

constexpr int kMostTopics = 16;
constexpr int kWordsPerTopic = 24;

std::span<const std::string_view, kWordsPerTopic> topic_words(int topic);

// '@' is a content word, '#' a taste word, '%' what the domain calls a thing.
std::span<const std::string_view> content_sentences();
std::span<const std::string_view> taste_sentences();
std::span<const std::string_view> verdicts(int stars);  // 1 to 5

struct DomainVoice {
  std::array<std::string_view, 4> things;       // "paperback"
  std::array<std::string_view, 4> slang;        // ends a sentence
  std::array<std::string_view, 4> boilerplate;  // whole sentences, in every review
};
const DomainVoice& domain_voice(bool target);
const DomainVoice& plain_voice();  // of a review without a domain's mark

}  // namespace cfaa
