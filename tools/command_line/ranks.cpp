#include "tools/command_line/ranks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "host/core/error.h"
#include "host/core/log.h"

namespace cfaa::tools {
namespace {

// What a rank says of its failure, which may be everybody's: then the first has said it, and has
// ended the job, before the others come to it.
[[noreturn]] void fail(Group& group, const std::string& why) {
  if (group.is_first()) {
    log_error(why);
  } else {
    let_the_first_speak({.rank = group.rank(), .size = group.size()});
    log_error(fmt::format("rank {} of {}: {}", group.rank(), group.size(), why));
  }
  group.abort();
  std::abort();  // g++ does not know that a virtual function stays away
}

}  // namespace

void let_the_first_speak(const RankPlace& place) {
  if (place.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
}

void run_on_ranks(const RankPlace& place, const std::function<void(Group& group)>& work) {
  const std::unique_ptr<Group> group = said_once(place, [&] { return make_group(place); });
  if (group->size() == 1) {
    work(*group);
    return;
  }
  try {
    work(*group);
  } catch (const CLI::Error&) {
    throw;  // an exit code that all ranks have
  } catch (const std::bad_alloc&) {
    fail(*group, "there is not enough memory for this; use smaller sizes or more ranks");
  } catch (const std::exception& error) {
    fail(*group, error.what());
  }
}

bool is_first_rank() {
  return find_rank().rank == 0;
}

int threads_of_rank(const RankPlace& place, int asked_for) {
  if (asked_for > 0 || place.local_size == 1) return asked_for;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / place.local_size);
}

}  // namespace cfaa::tools
