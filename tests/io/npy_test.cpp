#include "host/io/npy.h"

#include <gtest/gtest.h>

#include "host/core/error.h"
#include "host/core/philox.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using test::read_text;
using test::refusal_of;
using test::TemporaryFolder;
using test::write_text;

std::string header_v1(const std::string& dictionary) {
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(dictionary.size() & 0xFF);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary;
}

std::string refusal(const std::string& content) {
  return refusal_of<NpyFile>("x.npy", content);
}

TEST(Npy, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  write_npy(folder.path("x.npy"), {2, 3}, values.data());

  const NpyFile file(folder.path("x.npy"));

  EXPECT_EQ(file.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.dtype(), DType::f64);
  EXPECT_EQ(file.read<double>(), values);
  EXPECT_EQ(file.read<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  ASSERT_NE(file.mapped<double>(), nullptr);
  EXPECT_EQ(file.mapped<double>()[5], 6);
  EXPECT_EQ(file.mapped<float>(), nullptr);
}

TEST(Npy, TheHeaderIsTheOneNumPyWrites) {
  const std::string header = npy_header(DType::f32, {12, 8});

  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 8), }");
  EXPECT_NE(npy_header(DType::i64, {5}).find("'shape': (5,), }"), std::string::npos);
  EXPECT_NE(npy_header(DType::i64, {}).find("'shape': (), }"), std::string::npos);
}

TEST(Npy, FortranOrderIsReadAsRows) {
  const TemporaryFolder folder;
  std::string content = header_v1("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n");
  for (const int32_t value : {1, 4, 2, 5, 3, 6}) {
    content.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  write_text(folder.path("x.npy"), content);

  EXPECT_EQ(NpyFile(folder.path("x.npy")).read<int64_t>(),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, FortranOrderOfThreeDimensionsIsReadAsRows) {
  const TemporaryFolder folder;
  std::string content =
      header_v1("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4), }\n");
  for (int c = 0; c < 4; ++c) {
    for (int b = 0; b < 3; ++b) {
      for (int a = 0; a < 2; ++a) {
        const auto value = static_cast<float>(a * 12 + b * 4 + c);
        content.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
    }
  }
  write_text(folder.path("x.npy"), content);

  const auto values = NpyFile(folder.path("x.npy")).read<float>();

  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(values[i], static_cast<float>(i));
}

TEST(Npy, HalfPrecisionIsRead) {
  const TemporaryFolder folder;
  write_text(folder.path("x.npy"),
             header_v1("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }\n") +
                 std::string("\x00\x3C\x00\xC0", 4));

  EXPECT_EQ(NpyFile(folder.path("x.npy")).read<float>(), (std::vector<float>{1, -2}));
}

TEST(Npy, MalformedFilesAreRefusedWithASentence) {
  const std::string good = header_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n");
  EXPECT_EQ(refusal(good + "abcd"), "");

  EXPECT_NE(refusal("").find("is not a .npy file"), std::string::npos);
  EXPECT_NE(refusal("PK\x03\x04 a zip file").find("is not a .npy file"), std::string::npos);
  EXPECT_NE(refusal(good + "abc").find("cut off"), std::string::npos);
  EXPECT_NE(refusal(good + "abcde").find("followed by something else"), std::string::npos);
  EXPECT_NE(refusal(good.substr(0, 30)).find("cut off inside its .npy header"), std::string::npos);
  EXPECT_NE(refusal(header_v1("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }") + "abcd")
                .find("'>f4'"),
            std::string::npos);
  EXPECT_NE(refusal(header_v1("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }") + "abcd")
                .find("fortran_order"),
            std::string::npos);
  EXPECT_NE(refusal(header_v1("{'descr': '<f4', 'shape': (1,), }") + "abcd").find("lacks"),
            std::string::npos);
  EXPECT_NE(
      refusal(header_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }") + "abcd")
          .find("shape"),
      std::string::npos);
  EXPECT_NE(refusal(header_v1("{'descr': '<f8', 'fortran_order': False, "
                              "'shape': (99999999999999999, 99999999999999999), }"))
                .find("no memory can hold"),
            std::string::npos);
}

TEST(Npy, RandomDamageNeverCrashes) {
  const std::string good =
      header_v1("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n") +
      std::string(16, 'x');
  const Philox random{11};
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
