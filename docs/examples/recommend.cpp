// Trains on a prepared directory and prints lists for its first users.
//
//   example_recommend data/ run/            ids and histories; a second call resumes or finds it
//
// `cfaa_gpu prepare` makes the directory. With review embeddings in it ("cfaa_gpu embed") leave
// config.model.inputs as it is: the reviews are what connects the domains.

#include <cfaa/device/make_context.h>
#include <cfaa/run/recommend.h>
#include <cfaa/run/run.h>
#include <cfaa/run/train.h>

#include <cstdio>
#include <exception>

namespace {

void train_and_recommend(const char* data, const char* place) {
  const auto context = cfaa::make_context("auto");  // a GPU where there is one
  cfaa::TrainRequest request;
  request.out = place;
  request.config.model.inputs = {"id", "history"};
  request.config.model.dim = 16;
  request.config.model.layers = {16};
  request.config.train.epochs = 3;

  const cfaa::TrainingSet set(data, request.config.model);
  const cfaa::TrainedRun trained = cfaa::train_run(*context, set, request);
  const cfaa::MetricValues& test = trained.result.domains.at("target").metrics;
  std::printf("%ld steps, NDCG@10 of the test split %.4f\n", static_cast<long>(trained.steps),
              test.at("NDCG@10"));

  cfaa::Run run(*context, place);
  int shown = 0;
  cfaa::recommend_all(*context, run, {.domain = "target", .top = 3},
                      [&](const cfaa::Recommendation& list) {
                        if (++shown > 3) return;
                        std::printf("%s:", list.user.c_str());
                        for (const cfaa::RecommendedItem& item : list.items) {
                          std::printf("  %s (%.3f)", item.item.c_str(), item.score);
                        }
                        std::printf("\n");
                      });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: example_recommend DATA RUN\n");
    return 2;
  }
  try {
    train_and_recommend(argv[1], argv[2]);
  } catch (const std::exception& error) {  // cfaa::Error: one sentence that says what to do
    std::fprintf(stderr, "example_recommend: %s\n", error.what());
    return 2;
  }
}
