#include "host/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/out_of_memory.h"
#include "host/core/terminal/progress.h"
#include "host/core/terminal/quantity.h"
#include "host/eval/evaluation.h"
#include "host/eval/metric_name.h"
#include "host/eval/user_metrics_file.h"
#include "host/train/checkpoint.h"
#include "host/train/device_memory.h"
#include "host/train/metrics_log.h"
#include "host/train/step_runner.h"
#include "host/train/trace.h"
#include "host/train/trained_model.h"

namespace cfaa {
namespace {

using nlohmann::json;

json metric_fields(const Part& part) {
  json fields = json::object();
  for (const MetricsAt& at : part.metrics) {
    for (std::size_t m = 0; m < kMetrics; ++m) {
      fields[metric_key(m, at.k)] = at.value[m];
    }
  }
  return fields;
}

// A line of the log: every loss with its value, its gradient's norm and its weight.
json log_fields(int64_t step, double epoch, const StepMeasures& measures) {
  json fields = {{"step", step},
                 {"epoch", epoch},
                 {"loss/score_source", measures.score[kSource]},
                 {"loss/score_target", measures.score[kTarget]},
                 {"norm/score", measures.score_norm},
                 {"norm/gradient", measures.gradient_norm},
                 {"target_probability", measures.target_probability}};
  for (const StepMeasures::Loss& loss : measures.losses) {
    fields["loss/" + loss.name] = loss.value;
    fields["norm/" + loss.name] = loss.norm;
    fields["weight/" + loss.name] = loss.weight;
  }
  return fields;
}

std::string describe(const StepMeasures& measures) {
  std::string text = fmt::format("loss {:.4f}, L_C {:.4f} + {:.4f}", measures.total(),
                                 measures.score[kSource], measures.score[kTarget]);
  for (const StepMeasures::Loss& loss : measures.losses) {
    text += fmt::format(", {} {:.4f}", loss.name, loss.value);
  }
  return text;
}

// The options of the losses of a step. Of all its parts together they compare as many typical
// samples as of one, and nu stays what it is beside a Gram matrix of as many rows more.
AlignmentOptions alignment_of_step(const RunConfig& config) {
  const TrainOptions& train = config.train;
  AlignmentOptions options = config.alignment;
  if (train.parts == 1 || train.alignment_batch == AlignmentBatch::local) return options;
  if (options.typical.k == 0) options.typical.k = std::max<int64_t>(1, train.batch_size / 2);
  if (options.slim.nu_scale == NuScale::absolute) {
    options.slim.nu *= static_cast<double>(train.parts);
  }
  return options;
}

template <class T>
class Trainer {
 public:
  Trainer(Context& context, const TrainingData& data, const RunConfig& config,
          const TrainerRequest& request, BatchAssembler<T>& assembler, Group& group)
      : context_(context),
        data_(data),
        config_(config),
        request_(request),
        group_(group),
        metric_(parse_metric(config.train.metric, "train.metric")),
        assembler_(assembler),
        model_(context, config_.model, alignment_of_step(config), model_shape(data),
               assembler_.shape()),
        runner_(context, divided(context), assembler_, config_.train, request.graphs) {
    if (group_.is_first()) {
      checkpoints_.emplace(request.files.checkpoints, config.train.keep_checkpoints);
    }
  }

  TrainOutcome run() {
    start();
    tell_memory();
    if (group_.is_first()) {
      log_.emplace(request_.files.log, request_.files.events, state_.step, request_.metrics);
    }
    const int64_t per_epoch = assembler_.steps_per_epoch();
    const int64_t most = config_.train.steps;
    const int64_t total = most > 0 ? most : config_.train.epochs * per_epoch;
    check_phases(total);
    Progress progress("training", total, {"step"});
    progress.resume_at(state_.step);
    while (state_.step < total && !state_.finished) {
      step(progress);
      const bool epoch_done = state_.step % per_epoch == 0 || state_.step == total;
      if (epoch_done) end_epoch((state_.step + per_epoch - 1) / per_epoch, progress);
      const bool stop = is_asked_to_stop();
      const int64_t every = config_.train.checkpoint_every;
      if (every > 0 ? state_.step % every == 0 || state_.finished : epoch_done) {
        checkpoint();
      } else if (stop) {
        checkpoint();
      }
      if (stop && state_.step < total && !state_.finished) {
        finish_checkpoints();
        return {.stopped = true, .steps = state_.step};
      }
    }
    progress.finish();
    finish_checkpoints();
    const TrainOutcome outcome = test();
    if (!state_.finished) explain_end(total);
    warn_of_plateau(total);
    return outcome;
  }

 private:
  void start() {
    const auto found = checkpoints_ ? checkpoints_->newest(request_.from) : std::nullopt;
    if (found.has_value()) {
      restore_parameters<T>(context_, found->arrays, model_.parameters(), true);
      state_ = found->state;
      log_info(
          fmt::format("resuming from step {} of {}", state_.step, request_.files.folder.string()));
    } else if (group_.is_first()) {
      runner_.load(0);
      model_.initialize(context_, runner_.batch(), static_cast<uint64_t>(config_.train.seed));
    }
    state_ = gather_values(context_, group_, state_)[0];
    share_parameters(true);
  }

  // Those of the first rank to all.
  void share_parameters(bool moments) {
    model_.parameters().for_each([&](const std::string& name, MatrixView<T> array) {
      if (!moments && name.starts_with("adam.")) return;
      group_.broadcast(context_, array.data, static_cast<std::size_t>(array.size()) * sizeof(T), 0);
    });
  }

  Cfaa<T>& divided(Context& context) {
    const TrainOptions& train = config_.train;
    if (group_.size() > 1 || train.parts > 1) {
      model_.divide(context, group_, train.parts, train.alignment_batch == AlignmentBatch::global);
    }
    return model_;
  }

  // A signal may reach one rank a step before another: all stop where the first of them does.
  bool is_asked_to_stop() {
    const bool mine = request_.stop != nullptr && request_.stop->load();
    if (group_.size() == 1) return mine;
    const std::vector<char> all = gather_values(context_, group_, static_cast<char>(mine));
    return std::find(all.begin(), all.end(), 1) != all.end();
  }

  void finish_checkpoints() {
    if (checkpoints_) checkpoints_->finish();
  }

  void add_to_log(const json& fields) {
    if (log_) log_->add(fields);
  }

  // A GPU's memory is what runs are refused for: told before anything is written.
  void tell_memory() {
    if (context_.device() == DeviceKind::cpu) return;
    runner_.rehearse(state_.step);
    const PlacedSizes reviews = model_.encoder().review_sizes();
    MeasuredParts measured{.scratch = context_.scratch().peak_bytes(), .reviews = reviews.device};
    for (int g = 0; g < model_.parameters().groups(); ++g) {
      measured.layers +=
          4 * static_cast<std::size_t>(model_.parameters().dense(g).size()) * sizeof(T);
    }
    context_.runtime().synchronize();
    for (const std::string& line : memory_table(
             memory_parts<T>(config_.model, assembler_.shape(), measured), *room_of(context_))) {
      log_info(line);
    }
    if (reviews.host > 0) {
      log_info(fmt::format(
          "{} MB of review vectors stay in the host's memory, from where the GPU reads a batch's; "
          "'cfaa_gpu embed --dtype float16' halves them",
          reviews.host / 1'000'000));
    }
  }

  void step(Progress& progress) {
    const int64_t step = state_.step;
    if (!request_.trace.empty() && step < request_.trace_steps) {
      write_trace<T>(context_, request_.trace, step, runner_, model_, config_);
    } else {
      runner_.run(step);
    }
    ++state_.step;
    progress.advance(1);
    if (state_.step % config_.train.log_every != 0 &&
        state_.step % assembler_.steps_per_epoch() != 0) {
      return;
    }
    const StepMeasures measures = measures_or_explain();
    add_to_log(log_fields(
        state_.step,
        static_cast<double>(state_.step) / static_cast<double>(assembler_.steps_per_epoch()),
        measures));
    progress.note(describe(measures));
    if (config_.train.target_supervision == Supervision::positives &&
        measures.target_probability > 0.95) {
      log_once(
          "the mean probability of the target's scores is above 0.95: with positives alone they "
          "saturate and cannot rank; see train.target_supervision");
    }
  }

  StepMeasures measures_or_explain() {
    try {
      const StepMeasures measures = runner_.measures();
      if (!std::isfinite(measures.total()) || !std::isfinite(measures.gradient_norm)) {
        throw Error(
            fmt::format("step {}: a loss or its gradient is NaN or infinite; lower the "
                        "learning rate",
                        state_.step));
      }
      return measures;
    } catch (const Error& error) {
      throw Error(fmt::format("training broke: {}; the last checkpoint of {} is good", error.what(),
                              request_.files.folder.string()));
    }
  }

  Evaluation evaluate_domain(std::size_t domain, Split split, std::vector<int64_t> ks,
                             int64_t bootstrap) {
    runner_.settle();
    runner_.pause();
    const HeldOut held_out = make_held_out(data_.domain(domain), split, config_.eval.mask);
    const DomainEmbeddings embeddings = embed_domain<T>(context_, model_, assembler_, domain);
    const ScorerArrays arrays = scorer_arrays<T>(context_, model_);
    const auto scorer = request_.base == nullptr
                            ? make_scorer(context_, embeddings, arrays)
                            : make_residual_scorer(context_, *request_.base->scores[domain],
                                                   embeddings, arrays, share_.beta);
    EvaluationOptions evaluation = config_.eval.options();
    evaluation.ks = std::move(ks);
    evaluation.bootstrap = bootstrap;
    return evaluate(context_, *scorer, held_out, evaluation);
  }

  Evaluation validate() { return evaluate_domain(kTarget, Split::valid, {metric_.k}, 0); }

  void end_epoch(int64_t epoch, Progress& progress) {
    const int64_t every = config_.train.eval_every;
    if (every == 0 || epoch % every != 0 || !in_last_phase()) return;
    const Evaluation valid = validate();
    const double value = valid.all.metrics[0].value[metric_.metric];
    if (state_.best_step < 0 || value > state_.best) {
      state_.best = value;
      state_.best_step = state_.step;
      state_.waited = 0;
      save_best();
    } else {
      ++state_.waited;
      state_.finished = out_of_patience();
      if (state_.finished) {
        log_info(fmt::format(
            "stopped early after epoch {}, step {}: {} did not improve in {}, {}; the best was "
            "{:.4f} at step {}",
            epoch, state_.step, config_.train.metric, counted(state_.waited, "validation"),
            counted(state_.step - state_.best_step, "step"), state_.best, state_.best_step));
      }
    }
    json fields = {{"step", state_.step}, {"epoch", epoch}};
    const json metrics = metric_fields(valid.all);
    for (const auto& [key, number] : metrics.items()) fields["valid/" + key] = number;
    add_to_log(fields);
    progress.note(fmt::format("{} {:.4f}, best {:.4f}, epoch {}", config_.train.metric, value,
                              state_.best, epoch));
  }

  // What is to be ranked with is made in the last phase.
  bool in_last_phase() const {
    const PhaseOptions& phases = config_.train.phases;
    return state_.step > phases.first_step(phases.count() - 1);
  }

  void check_phases(int64_t total) const {
    const PhaseOptions& phases = config_.train.phases;
    const std::size_t last = phases.count() - 1;
    if (last == 0 || phases.first_step(last) < total) return;
    throw Error(
        fmt::format("train.phases.{} begins at step {}, and training ends at step {}; raise {}",
                    phase_names()[last], phases.first_step(last), total,
                    config_.train.steps > 0 ? "train.steps" : "train.epochs"));
  }

  // An epoch of a small target is a step or two, so patience counts steps as well.
  bool out_of_patience() const {
    const TrainOptions& train = config_.train;
    return train.patience > 0 && state_.waited >= train.patience &&
           state_.step - state_.best_step >= train.patience_steps && state_.step >= train.min_steps;
  }

  void explain_end(int64_t total) const {
    const TrainOptions& train = config_.train;
    log_info(fmt::format("ended at step {}, as {} says", total,
                         train.steps > 0 ? "train.steps" : "train.epochs"));
    if (train.eval_every > 0 && total > 0 && state_.waited == 0) {
      log_warning(fmt::format(
          "the last validation was the best, {} {:.4f}: it was still improving; raise {}",
          train.metric, state_.best, train.steps > 0 ? "train.steps" : "train.epochs"));
    }
  }

  // Validation often sits at the value of popularity before it climbs.
  void warn_of_plateau(int64_t total) {
    if (config_.train.eval_every == 0 || total == 0) return;
    const double popular = popularity();
    if (state_.best > popular) return;
    log_warning(fmt::format(
        "the best validation, {} {:.4f}, is not above that of the items' popularity, {:.4f}: it "
        "ended within its plateau; raise train.epochs, train.patience and train.min_steps",
        config_.train.metric, state_.best, popular));
  }

  // train.metric of the target's items ranked by how often they were chosen.
  double popularity() {
    DomainEmbeddings counts{1, {}, {}};
    for (std::size_t s = 0; s < 2; ++s) {
      const Neighbours& entities = data_.neighbours[kTarget][s];
      counts.count[s] = entities.count();
      for (int64_t e = 0; e < entities.count(); ++e) {
        counts.z[s].push_back(s == kUser ? 1.0f : static_cast<float>(entities.degree(e)));
      }
    }
    const auto scorer = make_scorer(context_, counts, {});
    EvaluationOptions evaluation = config_.eval.options();
    evaluation.ks = {metric_.k};
    evaluation.bootstrap = 0;
    const HeldOut held_out = make_held_out(data_.domain(kTarget), Split::valid, config_.eval.mask);
    return evaluate(context_, *scorer, held_out, evaluation).all.metrics[0].value[metric_.metric];
  }

  void save_best() {
    if (!group_.is_first()) return;
    write_best<T>(context_, request_.files.best, model_.parameters(),
                  {state_.step, config_.train.metric, state_.best});
  }

  void checkpoint() {
    measures_or_explain();  // a broken step must not become a checkpoint
    if (checkpoints_) checkpoints_->write(context_, model_.parameters(), state_);
  }

  ResidualShare choose_residual_share() {
    runner_.pause();
    const ResidualShare share = choose_share(
        context_, *request_.base->scores[kTarget],
        embed_domain<T>(context_, model_, assembler_, kTarget), scorer_arrays<T>(context_, model_),
        make_held_out(data_.domain(kTarget), Split::valid, config_.eval.mask));
    for (const ResidualShare::Tried& tried : share.tried) {
      log_info(fmt::format("beta {:.2f}: validation NDCG@10 {:.4f}, {:+.4f} ± {:.4f}", tried.beta,
                           tried.valid, tried.ahead, tried.error));
    }
    if (share.beta == 0) {
      log_info(
          "beta is 0: on validation the model is not ahead of the signals alone by a standard "
          "error, so that they rank alone");
    }
    return share;
  }

  void read_best() {
    const BestParameters best = restore_best<T>(context_, request_.files.best, model_.parameters());
    // Stopped behind a better validation than its last checkpoint knows, and not resumed past it.
    if (best.step != state_.best_step) {
      throw Error(fmt::format(
          "{}: its best parameters are those of step {}, and it would end at step {}; resume it "
          "with a larger train.epochs",
          request_.files.folder.string(), best.step, state_.step));
    }
  }

  TrainOutcome test() {
    if (state_.best_step < 0) {
      state_.best_step = state_.step;
      save_best();
    } else {
      if (group_.is_first()) read_best();
      share_parameters(false);
    }
    TrainOutcome outcome{false, state_.step, state_.best_step, state_.best, {}, {}};
    if (request_.base != nullptr) {
      outcome.share = share_ = choose_residual_share();
      outcome.valid = validate().all.metrics[0].value[metric_.metric];
    }
    const std::vector<int64_t> ks = config_.eval.options().ks;
    for (const std::size_t domain : {kTarget, kSource}) {
      if (!config_.train.uses(domain)) continue;
      outcome.test[domain] = evaluate_domain(domain, Split::test, ks, config_.eval.bootstrap);
    }
    return outcome;
  }

  Context& context_;
  const TrainingData& data_;
  const RunConfig& config_;
  const TrainerRequest& request_;
  Group& group_;
  MetricName metric_;
  BatchAssembler<T>& assembler_;
  Cfaa<T> model_;
  StepRunner<T> runner_;
  std::optional<Checkpoints> checkpoints_;  // of the first rank, as the log is
  TrainState state_;
  ResidualShare share_{1, {}};  // of a residual: whole until training has ended
  std::optional<MetricsLog> log_;
};

template <class T>
TrainOutcome train_in(Context& context, const TrainingData& data, const RunConfig& config,
                      const TrainerRequest& request) {
  BatchAssembler<T> assembler(
      data, config.model, config.train,
      request.base == nullptr ? PerDomain<const FoldOffsets*>{} : request.base->offsets);
  const std::unique_ptr<Group> alone = make_group_of_one();
  Group& group = request.group == nullptr ? *alone : *request.group;
  if (config.train.parts > 1 && !request.trace.empty()) {
    throw Error("--trace is for steps of one part; set train.parts to 1");
  }
  std::optional<Trainer<T>> trainer;
  try {
    trainer.emplace(context, data, config, request, assembler, group);
    return trainer->run();
  } catch (const OutOfMemory& shortage) {
    // Once tables and batches have their memory, all that is asked for is scratch.
    const std::size_t asked = trainer.has_value() ? shortage.bytes() : 0;
    throw Error(explain_shortage(
        shortage.what(), memory_parts<T>(config.model, assembler.shape(),
                                         {.scratch = context.scratch().peak_bytes() + asked})));
  }
}

}  // namespace

TrainOutcome train(Context& context, const TrainingData& data, const RunConfig& config,
                   const TrainerRequest& request) {
  config.check();
  return config.train.precision == TrainPrecision::f64
             ? train_in<double>(context, data, config, request)
             : train_in<float>(context, data, config, request);
}

TrainingData load_training_data(const Dataset& dataset, const ModelOptions& model) {
  TrainingData data{dataset, {}, {}, {}};
  for (std::size_t d = 0; d < 2; ++d) data.neighbours[d] = make_neighbours(data.domain(d));
  for (std::size_t d = 0; model.reads_words() && d < 2; ++d) {
    data.texts[d] = std::make_unique<TokenizedReviews>(
        tokenize_reviews(data.domain(d), model.words_model, model.words_max));
  }
  if (!model.reads_vectors()) return data;
  const auto [source, target] = load_review_sums(dataset);
  for (const std::size_t d : {kSource, kTarget}) {
    const Domain& domain = data.domain(d);
    const ReviewSums& all = d == kSource ? source : target;
    PerSide<ReviewSums> sums = {all, all};
    if (model.review_sentences == ReviewSentences::summary) {
      sums = {load_review_sums(domain, SummedSentences::user_summary),
              load_review_sums(domain, SummedSentences::item_summary)};
    }
    data.reviews[d] = std::make_unique<ReviewVectors>(domain, std::move(sums), model.review_scale);
  }
  return data;
}

}  // namespace cfaa
