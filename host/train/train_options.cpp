#include "host/train/train_options.h"

namespace cfaa {

OptionSet train_option_set(TrainOptions& options) {
  OptionSet set("train");
  set.add("domains", options.domains, "what is trained on: both domains, or the target alone",
          {{"both", TrainedDomains::both}, {"target", TrainedDomains::target}});
  set.add("epochs", options.epochs, "maximum number of epochs", between(0, 1e6));
  set.add("steps", options.steps, "maximum number of steps, instead of epochs; 0: epochs decides",
          at_least(0));
  set.add("batch_size", options.batch_size, "interactions of each domain in a step, N",
          between(1, 65536));
  set.add("parts", options.parts,
          "batches of that size that a step is made of, divided among the ranks: a power of two",
          between(1, 1024));
  set.add(
      "alignment_batch", options.alignment_batch,
      "what the vertical and the horizontal loss compare: all parts of a step together, or each "
      "part by itself",
      {{"global", AlignmentBatch::global}, {"local", AlignmentBatch::local}});
  set.add("epoch", options.epoch, "whose interactions an epoch goes through once",
          {{"target", EpochLength::target},
           {"source", EpochLength::source},
           {"longest", EpochLength::longest}});
  set.add("seed", options.seed, "random seed", between(0, 9e18));
  set.add("loss", options.loss, "L_C: cross entropy (the paper's), or pairwise",
          {{"bce", ScoreLoss::bce}, {"bpr", ScoreLoss::bpr}});
  set.add("reduction", options.reduction, "L_C as a mean over a domain's rows, or the paper's sum",
          {{"mean", Reduction::mean}, {"sum", Reduction::sum}});
  set.add("target_supervision", options.target_supervision,
          "what the target's scores learn from: positives and sampled negatives, positives alone "
          "(as in the paper), nothing",
          {{"negatives", Supervision::negatives},
           {"positives", Supervision::positives},
           {"none", Supervision::none}});
  set.add("negatives.source", options.source_negatives, "sampled negatives of a source positive",
          between(0, 64));
  set.add("negatives.target", options.target_negatives, "sampled negatives of a target positive",
          between(0, 64));
  set.add("negatives.sampling", options.sampling, "which items are drawn as negatives",
          {{"uniform", NegativeSampling::uniform}, {"popularity", NegativeSampling::popularity}});
  set.add("negatives.beta", options.sampling_beta, "exponent of the popularity", between(0, 2));
  set.add("learning_rate", options.learning_rate, "learning rate of Adam, for layers", positive());
  set.add("embedding_rate", options.embedding_rate, "the same, for embeddings: rows of tables",
          positive());
  set.add("beta1", options.beta1, "decay of Adam's first moment", between(0, 0.9999));
  set.add("beta2", options.beta2, "decay of Adam's second moment", between(0, 0.999999));
  set.add("epsilon", options.epsilon, "of Adam", positive());
  set.add("weight_decay", options.weight_decay, "of layers: decoupled, times the learning rate",
          at_least(0));
  set.add("embedding_decay", options.embedding_decay,
          "the same, of the rows of tables that a step touches", at_least(0));
  set.add("max_norm", options.max_norm, "norm at which the gradient is clipped; 0: never",
          at_least(0));
  set.add(
      "precision", options.precision,
      "float; factors of the layers' products in towers and scorer rounded to TF32, or bfloat16, "
      "for a GPU's tensor cores; double",
      {{"float", TrainPrecision::f32},
       {"tf32", TrainPrecision::tf32},
       {"bf16", TrainPrecision::bf16},
       {"double", TrainPrecision::f64}});
  set.add("eval_every", options.eval_every, "epochs between validations; 0: none", at_least(0));
  set.add("metric", options.metric, "the target's metric that chooses the best epoch");
  set.add("patience", options.patience,
          "validations without a better one before it stops; 0: never", at_least(0));
  set.add("patience_steps", options.patience_steps,
          "steps without a better validation before it stops, whatever patience says", at_least(0));
  set.add("min_steps", options.min_steps, "steps before patience may stop it", at_least(0));
  set.add("log_every", options.log_every, "steps between lines of the log", at_least(1));
  set.add("checkpoint_every", options.checkpoint_every,
          "steps between checkpoints; 0: at the end of each epoch", at_least(0));
  set.add("keep_checkpoints", options.keep_checkpoints, "newest checkpoints kept, besides the best",
          at_least(1));
  add_phase_options(set, options.phases);
  set.add_renamed("table_rate", "embedding_rate");
  set.add_renamed("table_decay", "embedding_decay");
  return set;
}

}  // namespace cfaa
