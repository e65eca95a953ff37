// What bench/peers/tsne_peers.py times of ours: t-SNE of a matrix in a .npy file.
//
//   tsne_call rows.npy points.npy THREADS
//
// Writes the points, and the seconds and the divergence to standard output.

#include <cstdio>
#include <cstdlib>

#include "host/core/stopwatch.h"
#include "host/device/make_context.h"
#include "host/eval/tsne.h"
#include "host/io/npy.h"

int main(int count, char** arguments) {
  using namespace cfaa;
  if (count != 4) return 2;
  const NpyFile file(arguments[1]);
  const std::vector<float> rows = file.read<float>();
  const auto context = make_context("cpu", {.threads = std::atoi(arguments[3])});
  const Stopwatch watch;
  const Tsne found = tsne(*context, {rows.data(), {file.shape()[0], file.shape()[1]}});
  std::printf("%.3f %.5f\n", watch.seconds(), found.divergence);
  write_npy<float>(arguments[2], {file.shape()[0], 2}, found.points.data());
}
