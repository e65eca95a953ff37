#pragma once

// signals.json: the weights that a run of signals has fitted, and what validation said of each
// prior and of each share of a residual. The signals themselves are made again from the data, to
// the same bits.

#include "host/run/directory/run_directory.h"
#include "host/run/signal_model.h"

namespace cfaa {

// Error where there is none, or it does not read.
SignalFit read_signal_fit(const RunDirectory& run);
void write_signal_fit(const RunDirectory& run, const SignalFit& fit);

}  // namespace cfaa
