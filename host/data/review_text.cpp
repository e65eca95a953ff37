#include "host/data/review_text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "host/core/error.h"
#include "host/io/content_hash.h"

namespace cfaa {
namespace {

constexpr char kMagic[8] = {'C', 'F', 'A', 'A', 'T', 'X', 'T', '1'};

}  // namespace

ReviewTextFile::ReviewTextFile(const std::filesystem::path& path) : file_(path.string()) {
  const auto fail = [&](const char* why) {
    throw Error(fmt::format("{}: {}; run prepare again", path.string(), why));
  };
  const std::size_t size = file_.bytes().size();
  if (size < sizeof(ReviewTextHeader) + sizeof(uint64_t)) {
    fail("is too short to be a review text file");
  }
  const ReviewTextHeader& h = header();
  if (std::memcmp(h.magic, kMagic, sizeof(kMagic)) != 0) fail("is not a review text file");
  const std::size_t room = size - sizeof(ReviewTextHeader);
  if (h.count >= room / sizeof(uint64_t) || h.bytes != room - (h.count + 1) * sizeof(uint64_t) ||
      offsets()[0] != 0 || offsets()[h.count] != h.bytes) {
    fail("is truncated or damaged");
  }
  for (uint64_t i = 0; i < h.count; ++i) {
    if (offsets()[i] > offsets()[i + 1]) fail("is damaged: its offsets do not ascend");
  }
}

std::string_view ReviewTextFile::text(int64_t i) const {
  CFAA_ASSERT(i >= 0 && i < count());
  const char* first = reinterpret_cast<const char*>(offsets() + header().count + 1);
  return {first + offsets()[i], offsets()[i + 1] - offsets()[i]};
}

void ReviewTextFile::verify() const {
  const auto payload = file_.bytes().subspan(sizeof(ReviewTextHeader));
  if (XXH3_64bits(payload.data(), payload.size()) != checksum()) {
    throw Error(fmt::format("{}: is damaged (checksum); run prepare again", file_.path()));
  }
}

std::string ReviewTextFile::hash(int64_t first, int64_t last) const {
  ContentHash hash;
  for (int64_t i = first; i < last; ++i) {
    const uint64_t length = bytes(i, i + 1);
    hash.add(&length, sizeof(length));
    hash.add(text(i));
  }
  return hash.text();
}

int64_t ReviewTextFile::first_from(uint64_t offset) const {
  return std::lower_bound(offsets(), offsets() + count(), offset) - offsets();
}

void write_review_text(OutputFile& file, std::size_t count,
                       const std::function<std::string_view(std::size_t)>& text) {
  ReviewTextHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.count = count;
  const auto put = [&](const void* bytes, std::size_t size) {
    file.write({static_cast<const char*>(bytes), size});
  };
  put(&header, sizeof(header));
  file.start_hash();
  for (std::size_t i = 0; i <= count; ++i) {
    put(&header.bytes, sizeof(header.bytes));
    if (i < count) header.bytes += text(i).size();
  }
  for (std::size_t i = 0; i < count; ++i) file.write(text(i));
  header.checksum = file.hash();
  file.overwrite(0, {reinterpret_cast<const char*>(&header), sizeof(header)});
}

}  // namespace cfaa
