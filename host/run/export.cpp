#include "host/run/export.h"

#include <fmt/format.h>

#include "host/io/atomic_file.h"
#include "host/io/npy.h"
#include "host/io/safetensors.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

void write_ids(const fs::path& path, const IdList& ids) {
  AtomicFile file(path.string());
  file.write("index\tid\n");
  for (int64_t i = 0; i < ids.size(); ++i) file.write(fmt::format("{}\t{}\n", i, ids[i]));
  file.commit();
}

}  // namespace

ExportReport export_embeddings(Run& run, const ExportRequest& request) {
  fs::create_directories(request.out);
  ExportReport report;
  const auto place = [&](const std::string& name) {
    return report.files.emplace_back(request.out / name);
  };
  SafetensorsWriter writer;
  PerDomain<DomainEmbeddings> embeddings;
  for (const std::size_t d : {kSource, kTarget}) {
    embeddings[d] = run.embed(d);
    const Domain& domain = run.domain(d);
    for (const std::size_t side : {kUser, kItem}) {
      const std::string name = domain.name + (side == kUser ? "_users" : "_items");
      const std::vector<int64_t> shape = {embeddings[d].count[side], embeddings[d].dim};
      const float* values = embeddings[d].z[side].data();
      if (request.format == ExportFormat::npy) {
        write_npy<float>(place(name + ".npy").string(), shape, values);
      } else {
        writer.add(name, shape, values);
      }
      write_ids(place(name + ".tsv"), side == kUser ? domain.users : domain.items);
    }
  }
  if (request.format == ExportFormat::safetensors) {
    writer.write(place("embeddings.safetensors").string());
  }
  return report;
}

}  // namespace cfaa
