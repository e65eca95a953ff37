#include "host/run/directory/directory_kind.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/run/directory/run_directory.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

bool is_prepared(const fs::path& path) {
  return fs::exists(path / "source" / "users.tsv") || fs::exists(path / "target" / "users.tsv");
}

}  // namespace

void require_run(const fs::path& path) {
  const RunDirectory run(path);
  if (run.is_run()) return;
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("{}: {}", path.string(), what));
  };
  if (!fs::exists(path)) {
    refuse("there is no such directory; give one that 'cfaa_gpu train' wrote");
  }
  if (!fs::is_directory(path)) {
    refuse("is a file; give a directory that 'cfaa_gpu train' wrote");
  }
  if (is_prepared(path)) {
    refuse("is a prepared directory; a run, which 'cfaa_gpu train' writes, has run.json");
  }
  if (const auto seeds = run.seeds(); !seeds.empty()) {
    refuse(fmt::format("holds the runs of {} seeds; give one of them, such as {}", seeds.size(),
                       seeds[0].name()));
  }
  if (fs::exists(run.result())) {
    refuse(
        "holds a result without the model that made it; a run, which 'cfaa_gpu train' writes, "
        "has run.json");
  }
  refuse("holds no run.json; give a directory that 'cfaa_gpu train' wrote");
}

void require_prepared(const fs::path& path) {
  if (is_prepared(path)) return;
  const RunDirectory run(path);
  if (run.is_run()) {
    throw Error(fmt::format("{}: is a run; give the prepared directory that it was trained on, {}",
                            path.string(), read_description(run).data));
  }
  if (!fs::exists(path)) {
    throw Error(
        fmt::format("{}: there is no such directory; 'cfaa_gpu prepare' makes one", path.string()));
  }
  throw Error(
      fmt::format("{}: holds no source/users.tsv; give a directory that 'cfaa_gpu prepare' "
                  "wrote",
                  path.string()));
}

}  // namespace cfaa
