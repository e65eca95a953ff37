#pragma once

// Which bytes of which files a shard reads. The files lie one behind the other, and shard i of n
// has the bytes from i/n to (i + 1)/n of them: a line belongs to the shard in whose bytes it
// begins. What cannot be read from its middle, a compressed file or a table whose records may hold
// line ends (CSV, TSV), belongs whole to the shard in whose bytes it begins.

#include <string>
#include <vector>

#include "host/embed/documents.h"
#include "host/embed/shards/shard.h"

namespace cfaa {

// How a file is read: as `format` says, or as its name does where that is to be detected.
LineFormat format_of(const std::string& path, LineFormat format);

// All of every file.
std::vector<CorpusPart> whole_parts(const std::vector<std::string>& inputs, LineFormat format);

// The bytes of all files as they lie on disk. Error where one is no regular file.
uint64_t bytes_of(const std::vector<std::string>& inputs);

// What the shard reads of them. Files that it has no byte of are not opened. Error where a file
// cannot be read as `lines` says, of which the first record is proof.
std::vector<CorpusPart> shard_parts(const std::vector<std::string>& inputs,
                                    const TextLinesOptions& lines, const Shard& shard);

}  // namespace cfaa
