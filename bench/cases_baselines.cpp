#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/cases.h"
#include "bench/reference/attention.h"
#include "bench/reference/embedding_sets.h"
#include "bench/reference/moments.h"
#include "bench/reference/texts.h"
#include "bench/validate.h"
#include "host/core/instantiate.h"
#include "host/ops/bag_attention.h"
#include "host/ops/bag_max.h"
#include "host/ops/covariance_loss.h"
#include "host/ops/word_attention.h"

namespace cfaa::bench {
namespace {

using reference::normal;

constexpr int64_t kWidth = 3, kFilters = 100, kLongest = 120, kBag = 20;
constexpr int64_t kKey = 128, kWordVector = 384, kWords = 200;

template <class T>
constexpr double kTolerance = sizeof(T) == 4 ? 1e-4 : 1e-11;

template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

template <class T>
std::string verdict(const std::vector<double>& found, const std::vector<double>& expected) {
  const double error = relative_error(found, expected);
  return error <= kTolerance<T> ? "" : fmt::format("off by {:.1e} from plain loops", error);
}

// Two numbers that must be equal, next to the size of what they are sums of.
template <class T>
std::string verdict(double found, double expected, double size) {
  const double error = std::abs(found - expected) / size;
  return error <= kTolerance<T> ? "" : fmt::format("its sum is off by {:.1e}", error);
}

double norm(const std::vector<double>& values) {
  return std::sqrt(product(values, values));
}

// Numbers on the host and on the device.
template <class T>
struct Numbers {
  Numbers(Context& context, int64_t rows, int64_t columns, uint64_t seed, double spread = 1)
      : host(normal<T>(rows * columns, seed, 0, spread)),
        device(context, {rows, columns}, host.data()) {}

  std::vector<double> given() const { return widened(host); }
  std::vector<double> found() const { return widened(device.to_host()); }

  std::vector<T> host;
  Tensor<T, 2> device;
};

// Reviews of a step, their words, and the bags that name them.
template <class T>
struct Reviews {
  Reviews(Context& context, const Sizes& sizes)
      : context(context),
        count(4 * sizes.n),
        words(16 * sizes.n),
        texts(reference::random_texts(count, words, kLongest, 70)),
        lists(reference::random_sets(5 * sizes.n, count, kBag, 71)),
        device_texts(context, texts, words),
        bags(context, lists),
        products(context, words, kWidth * kFilters, 72),
        dproducts(context, words, kWidth * kFilters, 72),
        bias(context, 1, kFilters, 73),
        dbias(context, 1, kFilters, 73),
        out(context, count, kFilters, 74),
        dout(context, count, kFilters, 75),
        x(context, count, kFilters, 76),
        dx(context, count, kFilters, 76),
        logits(context, 1, count, 77),
        dlogits(context, 1, count, 77),
        pooled(context, lists.bags(), kFilters, 78),
        dpooled(context, lists.bags(), kFilters, 79),
        softmax(context, {lists.bags(), 2}),
        position(context, {count, kFilters}),
        giver(context, {lists.bags(), kFilters}) {}

  static VectorView<T> row(const Numbers<T>& numbers) {
    return {numbers.device.view().data, {numbers.device.size()}};
  }
  double tokens() const { return static_cast<double>(texts.word.size()); }
  double entries() const { return static_cast<double>(lists.index.size()); }

  Context& context;
  int64_t count, words;
  reference::Texts texts;
  reference::BagLists lists;
  reference::DeviceTexts device_texts;
  reference::DeviceBags<T> bags;
  Numbers<T> products, dproducts, bias, dbias, out, dout, x, dx, logits, dlogits, pooled, dpooled;
  Tensor<T, 2> softmax;
  Tensor<int32_t, 2> position, giver;
};

template <class T>
Case convolution_case(const std::shared_ptr<Reviews<T>>& r) {
  Case c;
  c.name = "text_convolution";
  c.detail =
      fmt::format("{} reviews, {} words, {} filters", r->count, r->texts.word.size(), kFilters);
  c.work.flops = r->tokens() * (kWidth + 1) * kFilters;
  c.work.bytes = r->tokens() * kWidth * kFilters * sizeof(T);
  c.run = [r] {
    text_convolution<T>(r->context, r->products.device, r->row(r->bias), kWidth,
                        r->device_texts.texts(), r->out.device, r->position);
  };
  c.validate = [r, run = c.run] {
    run();
    return verdict<T>(r->out.found(), reference::text_convolution(r->texts, r->products.given(),
                                                                  r->bias.given(), kWidth));
  };
  return c;
}

// The convolution is homogeneous: <dout, out> = <dP, P> + <db, b>.
template <class T>
Case convolution_backward_case(const std::shared_ptr<Reviews<T>>& r) {
  Case c = convolution_case(r);
  const auto forward = c.run;
  c.name = "text_convolution_backward";
  c.run = [r] {
    text_convolution_backward<T>(r->context, r->dout.device, r->position, kWidth,
                                 r->device_texts.words(), r->dproducts.device, r->row(r->dbias));
  };
  c.validate = [r, forward, run = c.run] {
    forward();
    r->dbias.device.fill_zero();
    run();
    return verdict<T>(product(r->dproducts.found(), r->products.given()) +
                          product(r->dbias.found(), r->bias.given()),
                      product(r->dout.given(), r->out.found()),
                      norm(r->dout.given()) * norm(r->out.found()));
  };
  return c;
}

template <class T>
Case bag_max_case(const std::shared_ptr<Reviews<T>>& r) {
  Case c;
  c.name = "bag_max";
  c.detail = fmt::format("{} bags of {} reviews", r->lists.bags(), r->lists.index.size());
  c.work.flops = r->entries() * kFilters;
  c.work.bytes = r->entries() * kFilters * sizeof(T);
  c.run = [r] { bag_max<T>(r->context, r->x.device, r->bags.bags(), r->pooled.device, r->giver); };
  c.validate = [r, run = c.run] {
    run();
    return verdict<T>(r->pooled.found(), reference::bag_max(r->lists, r->x.given(), kFilters));
  };
  return c;
}

template <class T>
Case bag_attention_case(const std::shared_ptr<Reviews<T>>& r) {
  Case c = bag_max_case(r);
  c.name = "bag_attention";
  c.work.flops = 2 * r->entries() * kFilters;
  c.work.exponentials = 2 * r->entries();
  c.run = [r] {
    bag_attention<T>(r->context, r->x.device, r->row(r->logits), r->bags.bags(), r->pooled.device,
                     r->softmax);
  };
  c.validate = [r, run = c.run] {
    run();
    return verdict<T>(r->pooled.found(), reference::bag_attention(r->lists, r->x.given(), kFilters,
                                                                  r->logits.given()));
  };
  return c;
}

// Attention is linear in x: <dout, out> = <dx, x>.
template <class T>
Case bag_attention_backward_case(const std::shared_ptr<Reviews<T>>& r) {
  Case c = bag_attention_case(r);
  const auto forward = c.run;
  c.name = "bag_attention_backward";
  c.work.flops *= 2;
  c.run = [r] {
    bag_attention_backward<T>(r->context, r->x.device, r->row(r->logits), r->pooled.device,
                              r->softmax, r->dpooled.device, r->bags.touched(), r->dx.device,
                              r->row(r->dlogits));
  };
  c.validate = [r, forward, run = c.run] {
    forward();
    r->dx.device.fill_zero();
    run();
    return verdict<T>(product(r->dx.found(), r->x.given()),
                      product(r->dpooled.given(), r->pooled.found()),
                      norm(r->dpooled.given()) * norm(r->pooled.found()));
  };
  return c;
}

template <class T>
std::vector<Case> word_attention_cases(Context& context, const Sizes& sizes) {
  struct Memory {
    reference::BagLists lists;
    int64_t touched;
    Numbers<T> query, dquery, key, dkey, value, out, dout;
    reference::DeviceBags<T> bags;
    Tensor<T, 1> share;
  };
  const int64_t rows = sizes.n, words = 16 * sizes.n;
  reference::BagLists lists = reference::random_sets(rows, words, kWords, 80);
  for (std::size_t r = 0; r + 1 < lists.offset.size(); ++r) {
    std::sort(lists.index.begin() + lists.offset[r], lists.index.begin() + lists.offset[r + 1]);
  }
  const auto touched = static_cast<int64_t>(reference::by_row(lists).row.size());
  const auto entries = static_cast<int64_t>(lists.index.size());
  const auto m = std::make_shared<Memory>(
      Memory{lists, touched, Numbers<T>(context, rows, kKey, 81, 0.3),
             Numbers<T>(context, rows, kKey, 82), Numbers<T>(context, words, kKey, 83, 0.3),
             Numbers<T>(context, touched, kKey, 84), Numbers<T>(context, words, kWordVector, 85),
             Numbers<T>(context, rows, kWordVector, 86), Numbers<T>(context, rows, kWordVector, 87),
             reference::DeviceBags<T>(context, lists), Tensor<T, 1>(context, {entries})});
  Case forward, backward;
  forward.name = "word_attention";
  forward.detail = fmt::format("{} rows, {} words", rows, entries);
  forward.work.flops = 2.0 * static_cast<double>(entries * (kKey + kWordVector));
  forward.work.exponentials = static_cast<double>(entries);
  forward.run = [m, &context] {
    word_attention<T>(context, m->query.device, m->key.device, m->value.device, 1, m->bags.bags(),
                      m->out.device, m->share);
  };
  forward.validate = [m, run = forward.run] {
    run();
    return verdict<T>(m->out.found(),
                      reference::word_attention(m->lists, m->query.given(), m->key.given(), kKey,
                                                m->value.given(), kWordVector, 1));
  };
  backward.name = "word_attention_backward";
  backward.detail = forward.detail;
  backward.work.flops = 2 * forward.work.flops;
  backward.run = [m, &context] {
    word_attention_backward<T>(context, m->query.device, m->key.device, m->value.device, 1,
                               m->bags.bags(), m->share, m->dout.device, m->bags.touched(),
                               m->dquery.device, m->dkey.device);
  };
  // Logits are products of queries and keys: <dquery, query> = <dkey, key>.
  backward.validate = [m, first = forward.run, run = backward.run] {
    first();
    run();
    const auto dkey = m->dkey.found(), key = m->key.given();
    double of_keys = 0;
    std::size_t i = 0;
    for (const int32_t word : reference::by_row(m->lists).row) {
      for (std::size_t k = 0; k < kKey; ++k, ++i) {
        of_keys += dkey[i] * key[static_cast<std::size_t>(word) * kKey + k];
      }
    }
    return verdict<T>(product(m->dquery.found(), m->query.given()), of_keys,
                      norm(m->dquery.found()) * norm(m->query.given()));
  };
  return {forward, backward};
}

template <class T>
Case covariance_case(Context& context, const Sizes& sizes) {
  const std::vector<reference::HostSet> sets = {reference::normal_set(sizes.n, sizes.d, 60),
                                                reference::normal_set(sizes.n, sizes.d, 61),
                                                reference::normal_set(sizes.n, sizes.d, 62, 0, 2),
                                                reference::normal_set(sizes.n, sizes.d, 63)};
  const auto embeddings = std::make_shared<reference::EmbeddingSets<T>>(context, sets);
  const auto loss = std::make_shared<Tensor<T, 1>>(context, std::array<int64_t, 1>{1});
  Case c;
  c.name = "covariance_loss";
  c.detail = fmt::format("2 pairs of {} x {}", sizes.n, sizes.d);
  c.work.flops = 2.0 * 8 * static_cast<double>(sizes.n * sizes.d * sizes.d);
  c.run = [embeddings, loss, &context] {
    covariance_loss<T>(context, embeddings->pairs(), 1, *loss, embeddings->gradient_pairs());
  };
  c.validate = [sets, loss, run = c.run] {
    run();
    return verdict<T>(widened(loss->to_host()), {reference::covariance_loss(sets)});
  };
  return c;
}

}  // namespace

template <class T>
std::vector<Case> baseline_cases(Context& context, const Sizes& sizes) {
  const auto reviews = std::make_shared<Reviews<T>>(context, sizes);
  std::vector<Case> cases = {convolution_case(reviews), convolution_backward_case(reviews),
                             bag_max_case(reviews), bag_attention_case(reviews),
                             bag_attention_backward_case(reviews)};
  for (Case& attention : word_attention_cases<T>(context, sizes)) {
    cases.push_back(std::move(attention));
  }
  cases.push_back(covariance_case<T>(context, sizes));
  return cases;
}

CFAA_FOR_FLOAT_AND_DOUBLE(baseline_cases);

}  // namespace cfaa::bench
