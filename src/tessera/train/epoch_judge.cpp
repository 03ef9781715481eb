#include "tessera/train/epoch_judge.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/programs.h"

namespace tessera {

EpochJudge::EpochJudge(const RunConfig& config, const Task& task, const Dataset& data,
                       std::int64_t samples)
    : config_(config),
      task_(task),
      data_(data),
      samples_(samples),
      judges_(judges_epochs(config) && wanted_programs(config).evaluate) {}

std::int64_t EpochJudge::ended(std::int64_t consumed) const {
  if (!judges_) return 0;
  const std::int64_t now = std::min(consumed / samples_, config_.epochs),
                     before = (consumed - config_.global_batch_size) / samples_;
  return now > before ? now : 0;
}

EvalRecord EpochJudge::record(std::int64_t epoch, std::int64_t step, const Validation& measured,
                              const Judge* judge, const std::string& folder,
                              std::string& problem) const {
  EvalRecord out{.epoch = epoch, .step = step, .loss = measured.loss()};
  if (!task_.perplexity_of.empty())
    out.scores.emplace_back("perplexity", std::exp(measured.mean(task_.perplexity_of)));
  if (judge == nullptr) return out;
  const NamedMeans scores = judge->scores();
  out.scores.insert(out.scores.end(), scores.begin(), scores.end());
  const std::string path = in_folder(folder, predictions_file(epoch));
  try {
    write_atomically(path, to_tsv(judge->table()));
    out.predictions = path;
  } catch (const Error& error) {
    problem = text("no predictions of epoch ", epoch, ": ", error.what());
  }
  return out;
}

}  // namespace tessera
