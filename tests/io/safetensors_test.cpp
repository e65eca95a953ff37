#include "host/io/safetensors.h"

#include <gtest/gtest.h>

#include "host/core/error.h"
#include "host/core/philox.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using test::refusal_of;
using test::TemporaryFolder;
using test::write_text;

std::string file_with(const std::string& header, const std::string& data) {
  std::string content;
  uint64_t length = header.size();
  for (int b = 0; b < 8; ++b) content += static_cast<char>(length >> (8 * b) & 0xFF);
  return content + header + data;
}

std::string refusal(const std::string& content) {
  return refusal_of<SafetensorsFile>("x.safetensors", content);
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> ids = {7, 8};
  SafetensorsWriter writer;
  writer.add("weight", {2, 3}, weight.data());
  writer.add("ids", {2}, ids.data());
  writer.add_metadata("format", "pt");
  writer.write(folder.path("x.safetensors"));

  const SafetensorsFile file(folder.path("x.safetensors"));

  EXPECT_EQ(file.read<float>("weight"), weight);
  EXPECT_EQ(file.read<int64_t>("ids"), ids);
  EXPECT_EQ(file.entry("weight").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
}

TEST(Safetensors, BFloat16IsRead) {
  const TemporaryFolder folder;
  write_text(folder.path("x.safetensors"),
             file_with(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})",
                       std::string("\x80\x3F\x40\xC0", 4)));

  EXPECT_EQ(SafetensorsFile(folder.path("x.safetensors")).read<double>("a"),
            (std::vector<double>{1, -3}));
}

TEST(Safetensors, AMissingTensorIsNamedWithTheNearest) {
  const TemporaryFolder folder;
  const float one = 1;
  SafetensorsWriter writer;
  writer.add("encoder.weight", {1}, &one);
  writer.write(folder.path("x.safetensors"));

  const SafetensorsFile file(folder.path("x.safetensors"));

  try {
    file.entry("encoder.weights");
    FAIL() << "there is no such tensor";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'encoder.weight'"), std::string::npos);
  }
}

TEST(Safetensors, MalformedFilesAreRefusedWithASentence) {
  const auto tensor = [](const std::string& rest) { return "{\"a\":{" + rest + "}}"; };
  const std::string good = tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])");
  EXPECT_EQ(refusal(file_with(good, "abcd")), "");

  EXPECT_NE(refusal("abc").find("too short"), std::string::npos);
  EXPECT_NE(refusal(file_with(good, "abc")).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(file_with(good, "abcde")).find("belong to no tensor"), std::string::npos);
  EXPECT_NE(refusal(file_with("[1]", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(refusal(file_with("{\"a\":", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(refusal(file_with(std::string(5000, '['), "")).find("not a JSON object"),
            std::string::npos);
  EXPECT_NE(refusal(file_with(tensor(R"("dtype":"F99","shape":[1],"data_offsets":[0,4])"), "abcd"))
                .find("F99"),
            std::string::npos);
  EXPECT_NE(refusal(file_with(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "abcd"))
                .find("need 8"),
            std::string::npos);
  EXPECT_NE(refusal(file_with(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "abcd"))
                .find("shape"),
            std::string::npos);
  EXPECT_NE(
      refusal(
          file_with(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"),
                    "abcd"))
          .find("no memory can hold"),
      std::string::npos);
  const std::string twice = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_NE(refusal(file_with(twice, "ab")).find("twice"), std::string::npos);
  const std::string overlap = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                              R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})";
  EXPECT_NE(refusal(file_with(overlap, "abc")).find("overlap"), std::string::npos);
  EXPECT_NE(refusal(std::string(8, '\xFF') + "{}").find("cut off"), std::string::npos);
}

// A header of as many empty tensors.
std::string header_of(int count) {
  std::string header = "{";
  for (int i = 0; i < count; ++i) {
    header += (i > 0 ? "," : "") + ("\"t" + std::to_string(i)) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  return header + "}";
}

TEST(Safetensors, TensorsBeyondAllMeasureAreRefusedBeforeTheyCostMemory) {
  EXPECT_NE(refusal(file_with(header_of(200'000), "")).find("names 200000 tensors"),
            std::string::npos);
  EXPECT_NE(refusal(file_with(header_of(1'000'000), "")).find("of more than 32 MiB is not read"),
            std::string::npos);
}

TEST(Safetensors, ReadingManyTensorsTakesTimeInProportion) {
  EXPECT_EQ(refusal(file_with(header_of(50'000), "")), "");
}

TEST(Safetensors, RandomDamageNeverCrashes) {
  const std::string good = file_with(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"x":"y"}})", "abcd");
  const Philox random{12};
  for (uint64_t round = 0; round < 500; ++round) {
    std::string damaged = good.substr(0, random.below(good.size() + 1, round, 0));
    for (uint64_t hit = 0; hit < 3 && !damaged.empty(); ++hit) {
      const auto at = random.below(damaged.size(), round, 1 + 2 * hit);
      damaged[at] = static_cast<char>(random.below(256, round, 2 + 2 * hit));
    }
    refusal(damaged);
  }
}

}  // namespace
}  // namespace cfaa
