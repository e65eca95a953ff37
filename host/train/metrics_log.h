#pragma once

// What a run did, line by line: one JSON object a line with its step in the file `lines`, and the
// same numbers as a TensorBoard event file in the folder `events`. A run that resumes from a
// checkpoint drops the lines after it, so the file is that of an uninterrupted run.

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cfaa {

class MetricsLog {
 public:
  using Taker = std::function<void(const std::string& line)>;

  // Keeps the lines of steps up to `step` and drops the others. `taker`, if any, gets each new one.
  MetricsLog(const std::filesystem::path& lines, const std::filesystem::path& events, int64_t step,
             Taker taker = {});

  // `fields` has "step"; every number in it goes to TensorBoard under its key.
  void add(const nlohmann::json& fields);

 private:
  void add_event(const nlohmann::json& fields);

  std::ofstream lines_, events_;
  Taker taker_;
};

}  // namespace cfaa
