#pragma once

// A whole configuration: the sections of every command in one object, so that a file is checked as
// a whole whichever command reads it.

#include <string>
#include <vector>

#include "host/data/prepare_options.h"
#include "host/embed/options.h"
#include "host/train/run_config.h"

namespace cfaa {

struct Configuration {
  PrepareOptions prepare;
  EmbedOptions embed;
  RunConfig run;  // model, losses, alignment, signals, train, eval

  // prepare, embed, model, losses, alignment, signals, train, eval: bound to this object.
  std::vector<OptionSet> sections();

  // Puts the values of a file, and of what it includes, over those that are there. Error naming the
  // file and the section or key that does not exist, or what a value may be.
  void read(const std::string& path);
  // The same of the text of a JSON object, which `origin` names in messages.
  void read_text(const std::string& text, const std::string& origin);
  // "train.epochs=5", as --set gives it.
  void set(const std::string& assignment);
};

}  // namespace cfaa
