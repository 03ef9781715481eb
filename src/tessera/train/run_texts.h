#pragma once
/// Texts that a run writes while it trains: one to show now and then, and translations of held-out
/// sources, which are scored.

#include <functional>
#include <memory>

#include "tessera/data/bleu.h"
#include "tessera/train/prepare.h"
#include "tessera/train/trainer.h"
#include "tessera/train/written_sample.h"

namespace tessera {

/// On the leader of a group whose plan has the programs for RunConfig::sample_every or eval_texts.
class RunTexts {
 public:
  /// All must outlive it. `shown`: what a text is shown of.
  RunTexts(RankGroup& group, const Task& task, const PreparedRun& run, const Samples& shown,
           const TrainOptions& options)
      : group_(group), task_(task), run_(run), shown_(shown), options_(options) {}

  /// Tells the callbacks a text that the model writes now.
  void show(std::int64_t step);

  /// Writes from the sources of the first config.eval_texts of `samples` what the model thinks
  /// likeliest, token by token, adds "bleu" of these texts to `means` (data/bleu.h; the references
  /// are the targets), and tells the callbacks the first of them. Logits that are not finite are a
  /// notice, and there is no "bleu". False: a request to stop came before all were written.
  bool score(std::int64_t step, const Samples& samples, NamedMeans& means);

 private:
  /// Calls `write`; logits that are not finite end no run.
  void unless_not_finite(std::int64_t step, const char* what, const std::function<void()>& write);

  RankGroup& group_;
  const Task& task_;
  const PreparedRun& run_;
  const Samples& shown_;
  const TrainOptions& options_;
};

}  // namespace tessera
