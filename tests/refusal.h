#pragma once

// What the code says where it refuses something of the user's.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "host/core/error.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {

// The message of the Error that `work` throws, "" where it throws none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The message with which File(path) refuses a file of this content, "" where it does not. It must
// name the file.
template <class File>
std::string refusal_of(const std::string& name, const std::string& content) {
  const TemporaryFolder folder;
  write_text(folder.path(name), content);
  const std::string message = error_of([&] { const File file(folder.path(name)); });
  EXPECT_TRUE(message.empty() || message.find(name) != std::string::npos) << message;
  return message;
}

}  // namespace cfaa::test
