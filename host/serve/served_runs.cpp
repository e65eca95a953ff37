#include "host/serve/served_runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/device/make_context.h"
#include "host/run/newcomers.h"
#include "host/run/run.h"

namespace cfaa {

namespace {

namespace fs = std::filesystem;

// What changes where a run is replaced, or its best parameters are.
std::string fingerprint(const std::string& path) {
  const RunDirectory place(path);
  fs::path best = place.best();
  best += ".json";
  std::string text;
  for (const fs::path& file :
       {place.description(), place.signals(), best, place.baseline(), place.baseline_arrays()}) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
      text += "-;";
      continue;
    }
    text += fmt::format("{},{},{}.{:09};", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                        status.st_mtim.tv_nsec);
  }
  return text;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

}  // namespace

struct ServedRuns::OpenRun {
  OpenRun(Context& context, const std::string& path, const ServedRunsOptions& options)
      : model(open_model(context, path, options.data)) {
    const std::shared_ptr<ReviewReader> reader = open_reader(context, *model, options.encoder);
    for (const std::string& name : options.domains) {
      const std::vector<std::size_t> has = model->domains();
      if (std::find(has.begin(), has.end(), domain_index(name)) == has.end()) {
        throw Error(fmt::format("{}: has no lists of the {} domain; leave it out", path, name));
      }
      domains.push_back({name, std::make_unique<Recommender>(*model, name),
                         make_newcomers(context, *model, name, reader)});
    }
  }

  // Null where the model needs none, or there is none.
  static std::shared_ptr<ReviewReader> open_reader(Context& context, const RankingModel& model,
                                                   const std::string& encoder) {
    if (encoder.empty()) return nullptr;
    return open_review_reader(context, model, encoder);
  }

  // Null where the model has no lists for people it was not trained with.
  static std::unique_ptr<Newcomers> make_newcomers(Context& context, RankingModel& model,
                                                   const std::string& name,
                                                   const std::shared_ptr<ReviewReader>& reader) {
    try {
      return std::make_unique<Newcomers>(context, model, name, reader);
    } catch (const Error& error) {
      log_once(fmt::format("without lists for newcomers: {}", error.what()));
      return nullptr;
    }
  }

  struct OpenDomain {
    std::string name;
    std::unique_ptr<Recommender> recommender;
    std::unique_ptr<Newcomers> newcomers;
  };
  const OpenDomain& open_domain(const std::string& name) const {
    if (name.empty()) return domains[0];
    for (const OpenDomain& domain : domains) {
      if (domain.name == name) return domain;
    }
    throw NotFound(fmt::format("the {} domain is not served", name));
  }
  const Recommender& domain(const std::string& name) const {
    return *open_domain(name).recommender;
  }

  std::unique_ptr<RankingModel> model;
  std::vector<OpenDomain> domains;
};

struct ServedRuns::Slot {
  std::string name, path;
  std::string opened;  // its fingerprint then
  std::string failed;  // of what could not be opened
  std::shared_ptr<const OpenRun> run;
};

ServedRuns::ServedRuns(const ServedRunsOptions& options)
    : options_(options), opening_(make_context(options.device, {.threads = options.workers})) {
  const bool cpu = opening_->device() == DeviceKind::cpu;
  const int workers = cpu ? opening_->threads().threads() : 1;
  for (int worker = 0; worker < workers; ++worker) {
    contexts_.push_back(make_context(options.device, {.threads = 1}));
  }
  for (const std::string& path : options.runs) {
    auto slot = std::make_unique<Slot>();
    slot->path = path;
    const fs::path place = fs::weakly_canonical(path);
    const std::string name = (place.has_filename() ? place : place.parent_path()).filename();
    slot->name = name;
    for (int other = 2; std::any_of(slots_.begin(), slots_.end(),
                                    [&](const auto& s) { return s->name == slot->name; });
         ++other) {
      slot->name = fmt::format("{}-{}", name, other);
    }
    slot->opened = fingerprint(path);
    slot->run = std::make_shared<OpenRun>(*opening_, path, options_);
    slots_.push_back(std::move(slot));
  }
}

ServedRuns::~ServedRuns() = default;

void ServedRuns::reload(Counters& counters) {
  for (const auto& slot : slots_) {
    const std::string now = fingerprint(slot->path);
    if (now == slot->opened || now == slot->failed) continue;
    try {
      auto opened = std::make_shared<const OpenRun>(*opening_, slot->path, options_);
      // Written to meanwhile: what was read may be of both.
      if (fingerprint(slot->path) != now) continue;
      {
        const std::lock_guard lock(mutex_);
        slot->run.swap(opened);
      }
      slot->opened = now;
      counters.count_reload(true);
      log_info(fmt::format("{}: was replaced and is served anew", slot->name));
    } catch (const Error& error) {
      slot->failed = now;
      counters.count_reload(false);
      log_warning(fmt::format("{}: was replaced by what cannot be opened, the old one stays: {}",
                              slot->name, error.what()));
    }
  }
}

std::shared_ptr<const ServedRuns::OpenRun> ServedRuns::run(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& slot : slots_) {
    if (name.empty() || slot->name == name) return slot->run;
  }
  throw NotFound("there is no such run; /runs lists those that are served");
}

namespace {

int32_t user_row(const Domain& domain, const std::string& user) {
  const int64_t found = domain.users.find(user);
  if (found < 0) throw NotFound(fmt::format("there is no such user in the {} domain", domain.name));
  return static_cast<int32_t>(found);
}

}  // namespace

int ServedRuns::workers() const {
  return static_cast<int>(contexts_.size());
}

std::vector<ServedRun> ServedRuns::runs() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedRun> all;
  for (const auto& slot : slots_) {
    ServedRun& served = all.emplace_back();
    served.name = slot->name;
    for (const OpenRun::OpenDomain& open : slot->run->domains) {
      const Domain& domain = open.recommender->domain();
      served.domains.push_back(
          {open.name, domain.users.size(), domain.items.size(), open.newcomers != nullptr});
    }
  }
  return all;
}

Recommendation ServedRuns::recommend(int worker, const Place& place, const std::string& user,
                                     int64_t top, bool reasons) {
  const auto open = run(place.run);
  const Recommender& recommender = open->domain(place.domain);
  return recommender.recommend(*contexts_[static_cast<std::size_t>(worker)],
                               user_row(recommender.domain(), user), top, reasons);
}

NewcomerList ServedRuns::recommend(int worker, const Place& place,
                                   const std::vector<WrittenReview>& reviews, int64_t top,
                                   bool reasons) {
  const auto open = run(place.run);
  const OpenRun::OpenDomain& domain = open->open_domain(place.domain);
  if (domain.newcomers == nullptr) throw BadRequest("this run has no lists for newcomers");
  std::vector<NewReview> written;
  for (const WrittenReview& review : reviews) {
    NewReview& made = written.emplace_back();
    made.item = review.item;
    made.text = review.text;
    if (review.rating) made.rating = *review.rating;
  }
  NewUserLists lists =
      domain.newcomers->lists(*contexts_[static_cast<std::size_t>(worker)], written, top, reasons);
  return {std::move(lists.users.at(0)), std::move(lists.unknown_items)};
}

std::vector<SimilarItem> ServedRuns::similar(const Place& place, const std::string& item,
                                             int64_t top) {
  const auto open = run(place.run);
  const Recommender& recommender = open->domain(place.domain);
  const int64_t found = recommender.domain().items.find(item);
  if (found < 0) {
    throw NotFound(
        fmt::format("there is no such item in the {} domain", recommender.domain().name));
  }
  if (!recommender.has_similar()) {
    throw BadRequest("this run has no measure of how alike two items are");
  }
  return recommender.similar(static_cast<int32_t>(found), top);
}

std::vector<HistoryItem> ServedRuns::history(const Place& place, const std::string& user) {
  const auto open = run(place.run);
  const Recommender& recommender = open->domain(place.domain);
  const Domain& domain = recommender.domain();
  const int32_t row = user_row(domain, user);
  const SplitRows& rows = domain.train;
  const auto [first, last] = std::equal_range(rows.user.begin(), rows.user.end(), row);
  std::vector<HistoryItem> items;
  for (auto at = first - rows.user.begin(); at < last - rows.user.begin(); ++at) {
    const auto i = static_cast<std::size_t>(at);
    if (rows.label[i] != 1) continue;
    items.push_back({std::string(domain.items[rows.item[i]]),
                     std::string(recommender.title(rows.item[i])),
                     recommender.words(row, rows.item[i])});
  }
  return items;
}

std::vector<NamedId> ServedRuns::find(const Place& place, bool items, const std::string& text,
                                      int64_t top) {
  const auto open = run(place.run);
  const Recommender& recommender = open->domain(place.domain);
  const IdList& ids = items ? recommender.domain().items : recommender.domain().users;
  const std::string wanted = lower(text);
  std::vector<NamedId> found;
  for (int64_t i = 0; i < ids.size() && std::ssize(found) < top; ++i) {
    const std::string_view title =
        items ? recommender.title(static_cast<int32_t>(i)) : std::string_view();
    if (!lower(ids[i]).starts_with(wanted) && lower(title).find(wanted) == std::string::npos) {
      continue;
    }
    found.push_back({std::string(ids[i]), std::string(title)});
  }
  return found;
}

}  // namespace cfaa
