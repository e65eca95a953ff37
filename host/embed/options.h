#pragma once

// The `embed` section of the configuration: which model, how it is read, and what a row is.

#include <string>

#include "host/core/device.h"
#include "host/core/dtype.h"
#include "host/core/options.h"
#include "host/encoder/encoder.h"
#include "host/text/sentences.h"

namespace cfaa {

enum class ModelForm { encoder, sentence_transformers };
enum class SplitChoice { automatic, sentences, none };
enum class PrecisionChoice { automatic, f32, tf32, f16, bf16 };

struct EmbedOptions {
  std::string model, layer = "penultimate", cache;
  ModelForm as = ModelForm::encoder;
  Pooling pooling = Pooling::mean;
  PrecisionChoice precision = PrecisionChoice::automatic;
  int64_t max_length = 0, batch_tokens = 0;
  int64_t window = 0;  // sentences; 0: default_window_sentences
  DType dtype = DType::f32;
  SplitChoice split = SplitChoice::automatic;
  Language lang = Language::kEnglish;
  bool summaries = false;  // of users and items (host/embed/summaries.h)
};

OptionSet embed_option_set(EmbedOptions& options);

// Where it is automatic: f16 on a GPU, f32 on the CPU.
NetworkPrecision network_precision(PrecisionChoice choice, DeviceKind device);

std::string name_of(Pooling pooling);  // "mean"

}  // namespace cfaa
