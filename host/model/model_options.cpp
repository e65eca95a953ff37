#include "host/model/model_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/error.h"

namespace cfaa {

bool ModelOptions::has(const char* input) const {
  return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
}

void ModelOptions::check() const {
  if (reads_words()) check_words();
  if (scorer_dropout > 0 && (scorer == ScorerKind::dot || scorer == ScorerKind::none)) {
    throw Error(
        "model.scorer_dropout is above 0, and model.scorer has nothing to leave out: set it to "
        "mlp, "
        "mlp+dot, fm or gated_product, or model.scorer_dropout to 0");
  }
}

void ModelOptions::check_words() const {
  const bool memory = encoder == EncoderKind::word_memory;
  const char* name = memory ? "word_memory" : "convolution";
  if (has("history") || !has("review") || (memory && !has("id"))) {
    throw Error(fmt::format(
        "model.inputs must be {}, where model.encoder is {}: it reads the words of reviews and the "
        "id's own row",
        memory ? "[id, review]" : "[review] or [id, review]", name));
  }
  if (!memory && id_dim > 0 && has("id") && id_dim != z_columns()) {
    throw Error(
        fmt::format("model.id_dim is {}, and model.encoder is convolution, which adds the id's row "
                    "to Z: set it to 0",
                    id_dim));
  }
  if (memory && (id_dim == 0 || id_dim >= z_columns())) {
    throw Error(
        "model.id_dim must be above 0 and below model.dim where model.encoder is word_memory: Z is "
        "the id's row and, behind it, a mean of word vectors");
  }
  if (words_model.empty()) {
    throw Error(fmt::format(
        "model.words.model is empty, and model.encoder is {}: give the folder of a Hugging Face "
        "model (tools/get_model minilm fetches one to build/models/minilm)",
        name));
  }
}

OptionSet model_option_set(ModelOptions& options) {
  OptionSet set("model");
  set.add_choice(
      "variant", "short for leaving losses out: both, horizontal, vertical, none of the two",
      {"base", "v", "h", "full"},
      [&options](std::size_t i) { options.losses.choose(static_cast<Variant>(i)); },
      [&options] { return static_cast<std::size_t>(options.losses.variant()); });
  set.add("encoder", options.encoder,
          "what makes embeddings of users and items: towers, a convolution over the words of their "
          "reviews, or a memory of those words",
          {{"towers", EncoderKind::towers},
           {"convolution", EncoderKind::convolution},
           {"word_memory", EncoderKind::word_memory}});
  set.add("dim", options.dim, "attributes of an embedding, D", between(1, 4096));
  set.add("inputs", options.inputs, "what an encoder reads", {"id", "history", "review"});
  set.add("id_dim", options.id_dim, "size of a user's or item's own row; 0: dim", between(0, 4096));
  set.add("history_dim", options.history_dim, "size of a row of the history table F; 0: dim",
          between(0, 4096));
  set.add("history.pooling", options.history_pooling, "how the rows of a history are joined",
          {{"sum", HistoryPooling::sum}, {"mean", HistoryPooling::mean}});
  set.add("history.labels", options.history_labels,
          "a disliked item in a history: like any other, with a minus, or with a row of its own",
          {{"ignore", HistoryLabels::ignore},
           {"signed", HistoryLabels::signs},
           {"split", HistoryLabels::split}});
  set.add("history.exclude_self", options.history_exclude_self,
          "leave the predicted interaction out of both histories");
  set.add("history.max", options.history_max,
          "interactions of a history, and reviews, that are read, a sample fixed per epoch; 0: all",
          at_least(0));
  set.add("review.scale", options.review_scale,
          "review vectors as they are, at unit RMS, or standardised per domain and feature",
          {{"raw", ReviewScale::raw},
           {"unit", ReviewScale::unit},
           {"standardize", ReviewScale::standardize}});
  set.add("review.sentences", options.review_sentences,
          "whose mean a review vector is: all sentences of a side's reviews, or those of its "
          "extractive summary (embed.summaries)",
          {{"all", ReviewSentences::all}, {"summary", ReviewSentences::summary}});
  set.add("review.exclude_self", options.review_exclude_self,
          "leave the predicted interaction's own review out of both sides");
  set.add(
      "words.model", options.words_model,
      "folder of the Hugging Face model whose tokenizer and word vectors reviews are read with, "
      "where the encoder reads words");
  set.add("words.max", options.words_max, "words of a review that are read", at_least(1));
  set.add("words.row_max", options.words_row_max,
          "distinct words of a user or an item that a memory of words reads", between(1, 65536));
  set.add("convolution.filters", options.filters, "filters of the convolution", between(1, 4096));
  set.add("convolution.window", options.window, "words that a filter sees at once", between(1, 16));
  set.add("convolution.pooling", options.pooling,
          "how the reviews of a user or an item are joined: the maximum of each filter, or a mean "
          "weighed by attention to whom they are about",
          {{"max", ReviewPooling::max}, {"attention", ReviewPooling::attention}});
  set.add("convolution.attention", options.attention,
          "size of the attention's hidden layer and of its rows", between(1, 4096));
  set.add("layers", options.layers, "hidden layers of a tower; [] is a linear tower",
          between(1, 8192));
  set.add("residual", options.residual,
          "what is added to Z past the layers instead of being read by them; its size must be dim",
          {{"none", Residual::none}, {"id", Residual::id}, {"id+history", Residual::id_history}});
  set.add("dropout", options.dropout, "share of hidden units left out in training",
          between(0, 0.95));
  set.add("towers", options.towers,
          "the target's towers: their own, started as copies of the source's, or the source's",
          {{"separate", TowerSharing::separate},
           {"tied_start", TowerSharing::tied_start},
           {"shared", TowerSharing::shared}});
  set.add("scorer", options.scorer,
          "how a pair is scored: not at all (signals do), an MLP on both, their product, both, a "
          "factorisation machine (DeepCoNN), a weighted sum of positive products (NARRE)",
          {{"none", ScorerKind::none},
           {"mlp", ScorerKind::mlp},
           {"dot", ScorerKind::dot},
           {"mlp+dot", ScorerKind::mlp_dot},
           {"fm", ScorerKind::fm},
           {"gated_product", ScorerKind::gated_product}});
  set.add("scorer_layers", options.scorer_layers, "hidden layers of the MLP scorer",
          between(1, 8192));
  set.add("scorer_dropout", options.scorer_dropout,
          "share left out in training of what the MLP reads, of the machine's factors, of the "
          "gated products",
          between(0, 0.95));
  set.add("factors", options.factors, "factors of the factorisation machine", between(1, 4096));
  set.add("table_scale", options.table_scale, "initial standard deviation of the tables",
          positive());
  set.add("output_scale", options.output_scale,
          "initial standard deviation of the embeddings Z, set on the first batch", positive());
  return set;
}

}  // namespace cfaa
