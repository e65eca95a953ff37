#include "host/model/encoder.h"

#include "host/model/convolution.h"
#include "host/model/towers.h"
#include "host/model/word_memory.h"

namespace cfaa {

std::string tower_name(std::size_t domain, std::size_t side) {
  return std::string(domain == kSource ? "source" : "target") + (side == kUser ? ".user" : ".item");
}

int64_t ModelShape::history_rows(const ModelOptions& options, std::size_t domain,
                                 std::size_t side) const {
  const int64_t others = count[domain][1 - side];
  return options.history_labels == HistoryLabels::split ? 2 * others : others;
}

template <class T>
std::unique_ptr<Encoder<T>> make_encoder(Context& context, const ModelOptions& options,
                                         const ModelShape& shape, Parameters<T>& parameters) {
  if (options.encoder == EncoderKind::convolution) {
    return std::make_unique<Convolution<T>>(context, options, shape, parameters);
  }
  if (options.encoder == EncoderKind::word_memory) {
    return std::make_unique<WordMemory<T>>(context, options, shape, parameters);
  }
  return std::make_unique<Towers<T>>(context, options, shape, parameters);
}

template std::unique_ptr<Encoder<float>> make_encoder<float>(Context&, const ModelOptions&,
                                                             const ModelShape&, Parameters<float>&);
template std::unique_ptr<Encoder<double>> make_encoder<double>(Context&, const ModelOptions&,
                                                               const ModelShape&,
                                                               Parameters<double>&);

}  // namespace cfaa
