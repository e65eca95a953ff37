#pragma once

// The parts of a step, divided among ranks, and what their gradients add up to. A step is made of
// V parts of N interactions each, V a power of two; each of R ranks, R dividing V, computes V/R
// neighbouring ones. Sums are made along a fixed binary tree over the parts,
//
//   ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))
//
// whose lower levels are a rank's own and whose upper ones are those of the ranks: the same bits on
// any number of ranks. Ranks exchange bytes (host/device/group.h) and every addition is made here.
//
//   layers   each rank adds up one slice of the ranks' gradients (all_to_all) and shows the sum to
//            all (all_gather): twice the layers' bytes a step, however many ranks there are
//   tables   the rows that a rank's parts touch go to all ranks (all_gather), and every rank adds
//            up all of them; the tables themselves are whole on every rank
//
// Several parts are for the CPU so far.

#include <cstdint>
#include <span>
#include <vector>

#include "host/device/group.h"
#include "host/model/encoder.h"

namespace cfaa {

template <class T>
class PartSums {
 public:
  // Error where `parts` is no power of two or the ranks do not divide it.
  PartSums(Context& context, Group& group, int64_t parts);

  Group& group() const { return group_; }
  int64_t parts() const { return parts_; }                      // V
  int64_t own() const { return parts_ / group_.size(); }        // V / R
  int64_t first() const { return group_.rank() * own(); }       // of a rank's own parts
  int64_t rank_of(int64_t part) const { return part / own(); }  // whose it is
  bool is_own(int64_t part) const { return rank_of(part) == group_.rank(); }

  // `all`, contiguous, holds an equal share of every part, those of this rank written: writes the
  // others'.
  template <class U>
  void gather(Context& context, VectorView<U> all) const;

  // The same of equally many numbers of each own part, in host memory. Waits for the device.
  std::vector<double> gather_host(Context& context, const std::vector<double>& own) const;

  // What the pieces of a loss found, each on the rank that computed it, to all ranks: as many as
  // there are parts, or two (users and items).
  void share_pieces(Context& context, VectorView<T> values, View<T, 3> gradients) const;

  // One array of each own part, equally long: the first becomes the sum over all parts, the others
  // are used up.
  void sum(Context& context, std::span<const VectorView<T>> own) const;

  // The gradients of the same tables, of each own part: their sums over all parts, in the arena.
  std::vector<TableGradient<T>> sum_rows(
      Context& context, const std::vector<std::vector<TableGradient<T>>>& own) const;

  // A fault that one rank has met becomes every rank's, so that none of them updates anything.
  void share_fault(Context& context) const;

 private:
  Group& group_;
  int64_t parts_;
};

}  // namespace cfaa
