#pragma once

// Reviews for tests, and writers of every format that prepare reads.

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "host/data/prepare.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {

struct Review {
  std::string user, item;
  int rating = 5;
  int64_t time = 0;  // seconds
  std::string text;
};

// Reviews with repeated pairs, equal times and texts that need every kind of quoting. `one_line`:
// texts without tabs and newlines, for .inter.
inline std::vector<Review> random_reviews(int count, int users, int items, unsigned seed,
                                          const std::string& prefix, bool one_line = false) {
  std::mt19937 random(seed);
  const std::vector<std::string> bits = {
      "good", "it's",     "say \"hi\"", "back\\slash", "naïve ☕", "😀",
      ",",    "{'a': 1}", "",           "\\u0041",     "NULL",    "\x7f",
      "a; b", "#",        "ends'",      "\"\"x",       "\u2028",  "%s"};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Review> reviews;
  for (int i = 0; i < count; ++i) {
    // Squared: a few users and items have much more than the others.
    const int u = below(users) * below(users) / users, v = below(items) * below(items) / items;
    Review review;
    review.user = prefix + "U" + std::to_string(u);
    review.item = prefix + "I" + std::to_string(v);
    review.rating = 1 + below(5);
    review.time = 1300000000 + below(50) * 86400;
    for (int w = below(12); w > 0; --w) {
      review.text += bits[static_cast<std::size_t>(below(static_cast<int>(bits.size())))];
      review.text += one_line ? " " : below(9) == 0 ? "\n" : below(9) == 0 ? "\t" : " ";
    }
    reviews.push_back(review);
  }
  return reviews;
}

inline std::string as_json_2014(const std::vector<Review>& reviews) {
  std::string out;
  for (const Review& r : reviews) {
    nlohmann::ordered_json line = {{"reviewerID", r.user}, {"asin", r.item}, {"helpful", {1, 2}}};
    line["overall"] = static_cast<double>(r.rating);
    if (!r.text.empty()) line["reviewText"] = r.text;
    line["unixReviewTime"] = r.time;
    out += line.dump() + "\n";
  }
  return out;
}

inline std::string as_json_2023(const std::vector<Review>& reviews) {
  std::string out;
  for (const Review& r : reviews) {
    nlohmann::ordered_json line = {{"rating", static_cast<double>(r.rating)},
                                   {"title", "t"},
                                   {"text", r.text},
                                   {"images", nlohmann::json::array()},
                                   {"asin", "other"},
                                   {"parent_asin", r.item},
                                   {"user_id", r.user},
                                   {"timestamp", r.time * 1000}};
    out += line.dump(-1, ' ', true) + "\r\n";  // escapes all but ASCII, and Windows line ends
  }
  return out;
}

// As Python's repr() writes a str.
inline std::string python_repr(const std::string& text) {
  const bool twice = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  std::string out(1, twice ? '"' : '\'');
  for (const char c : text) {
    if (c == '\\' || c == out[0]) {
      out += std::string("\\") + c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == 0x7f) {
      out += "\\x7f";
    } else {
      out += c;
    }
  }
  return out + out[0];
}

inline std::string as_python(const std::vector<Review>& reviews) {
  std::string out;
  for (const Review& r : reviews) {
    out += fmt::format(
        "{{'reviewerID': {}, 'asin': {}, 'reviewerName': None, 'helpful': [1, 2], 'overall': {}.0, "
        "'reviewText': u{}, 'verified': True, 'unixReviewTime': {}}}\n",
        python_repr(r.user), python_repr(r.item), r.rating, python_repr(r.text), r.time);
  }
  return out;
}

inline std::string quoted(const std::string& field) {
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

inline std::string as_delimited(const std::vector<Review>& reviews, char delimiter) {
  std::string out =
      fmt::format("\xEF\xBB\xBFtime{0}\"text\"{0}stars{0}product_id{0}user\n", delimiter);
  for (const Review& r : reviews) {
    out += fmt::format("{1}{0}{2}{0}{3}{0}{4}{0}{5}\n", delimiter, r.time, quoted(r.text), r.rating,
                       r.item, quoted(r.user));
  }
  return out;
}

inline std::string as_inter(const std::vector<Review>& reviews) {
  std::string out =
      "user_id:token\titem_id:token\trating:float\treview:token_seq\ttimestamp:float\n";
  for (const Review& r : reviews) {
    out += fmt::format("{}\t{}\t{:.1f}\t{}\t{:.1f}\n", r.user, r.item, double(r.rating), r.text,
                       double(r.time));
  }
  return out;
}

inline std::string zstd_frames(const std::string& text) {
  std::string out;
  for (const std::size_t half : {std::size_t{0}, text.size() / 2}) {
    const std::size_t size = half == 0 ? text.size() / 2 : text.size() - text.size() / 2;
    std::string frame(ZSTD_compressBound(size), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data() + half, size, 3));
    out += frame;
  }
  return out;
}

// A gzip member of stored blocks, which needs no compressor; the checksum bit by bit.
inline std::string gzip_member(const std::string& text) {
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  const auto put = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  };
  std::size_t at = 0;
  do {
    const std::size_t size = std::min<std::size_t>(text.size() - at, 65535);
    out.push_back(at + size == text.size() ? 1 : 0);
    put(static_cast<uint32_t>(size), 2);
    put(~static_cast<uint32_t>(size), 2);
    out.append(text, at, size);
    at += size;
  } while (at < text.size());
  uint32_t crc = 0xffffffffu;
  for (const char c : text) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  put(~crc, 4);
  put(static_cast<uint32_t>(text.size()), 4);
  return out;
}

// Two members, the second empty, and zero padding: what tape and block devices leave.
inline std::string gzip_members(const std::string& text) {
  return gzip_member(text.substr(0, text.size() / 3)) + gzip_member(text.substr(text.size() / 3)) +
         gzip_member("") + std::string(100, '\0');
}

// Every file below a directory by its relative name, but for those named.
inline std::map<std::string, std::string> files_of(const std::string& directory,
                                                   const std::set<std::string>& except = {}) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = std::filesystem::relative(entry.path(), directory).string();
    if (entry.is_regular_file() && !except.contains(name)) {
      files[name] = read_text(entry.path().string());
    }
  }
  return files;
}

inline nlohmann::json run_prepare(const std::vector<std::string>& source,
                                  const std::vector<std::string>& target, const std::string& out,
                                  const PrepareOptions& options = {}, int threads = 2,
                                  bool force = false) {
  ThreadPool pool(threads);
  PrepareRequest request;
  request.source = source;
  request.target = target;
  request.out = out;
  request.force = force;
  request.options = options;
  return prepare(request, pool, {});
}

}  // namespace cfaa::test
