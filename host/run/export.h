#pragma once

// The trained embeddings of both domains, with their ids: arrays that other programs read.

#include <filesystem>
#include <vector>

#include "host/core/context.h"
#include "host/run/run.h"

namespace cfaa {

enum class ExportFormat { npy, safetensors };

struct ExportRequest {
  std::filesystem::path out;  // a directory
  ExportFormat format = ExportFormat::npy;
};

struct ExportReport {
  std::vector<std::filesystem::path> files;  // written
};

// source_users, source_items, target_users, target_items: each an array (.npy, or one of
// embeddings.safetensors) and a .tsv with the id of each row.
ExportReport export_embeddings(Run& run, const ExportRequest& request);

}  // namespace cfaa
