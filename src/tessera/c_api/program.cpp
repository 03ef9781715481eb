#include "tessera/c_api/program.h"

#include <memory>
#include <mutex>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/c_api/forward.h"
#include "tessera/user_code/model_call.h"

namespace tessera {

namespace {

/// What the functions of one program share.
class ProgramCalls {
 public:
  ProgramCalls(const tessera_program& program, std::atomic<bool>& failed)
      : program_(program), failed_(failed) {}

  const tessera_program& program() const { return program_; }

  /// Calls a function of the program, one at a time, and then `use` with what it gave.
  template <typename Function, typename Use>
  auto call(const Function& function, const Use& use) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    if (function() != 0) {
      const char* const problem = program_.problem == nullptr ? nullptr : program_.problem(user());
      fail_here(problem == nullptr ? "a function of the program failed" : problem);
    }
    return use();
  }

  void* user() const { return program_.user; }

  /// What was trained is saved before the run fails.
  [[noreturn]] void fail_here(const std::string& problem) {
    failed_ = true;
    fail(Fault::Data, problem);
  }

  /// Whether padding is to be marked as such.
  void read_by(const ModelConfig& model) {
    needs_mask_ = reads_padding(model);
    require_masked(unmasked_);
  }

  void note_unmasked(std::int64_t sample) {
    if (sample < 0) return;
    unmasked_ = sample;
    require_masked(sample);
  }

 private:
  void require_masked(std::int64_t sample) {
    if (sample < 0 || !needs_mask_) return;
    fail_here(text_of_unmasked(sample));
  }

  const tessera_program& program_;
  std::atomic<bool>& failed_;
  std::mutex mutex_;
  std::atomic<bool> needs_mask_ = false;
  std::atomic<std::int64_t> unmasked_ = -1;
};

template <typename Number>
void add_feature(std::vector<Features>& to, const tessera_feature& feature) {
  const auto* from = static_cast<const Number*>(feature.numbers);
  for (Features& sample : to) {
    Feature& mine = sample[feature.name];
    if (feature.row < 0) {
      mine = *from++;
    } else {
      mine = std::vector<Number>(from, from + feature.row);
      from += feature.row;
    }
  }
}

class ProgramDataset final : public MapDataset {
 public:
  ProgramDataset(std::shared_ptr<ProgramCalls> calls, bool held_out)
      : calls_(std::move(calls)), held_out_(held_out) {}

  std::int64_t size() const override {
    return held_out_ ? calls_->program().valid : calls_->program().train;
  }
  bool in_order() const override { return !held_out_ && calls_->program().in_order != 0; }
  std::string digest() const override {
    const char* const digest = calls_->program().digest;
    return digest == nullptr ? "" : digest;
  }
  Features get(std::int64_t i) const override { return std::move(get_all({&i, 1}).front()); }

  std::vector<Features> get_all(std::span<const std::int64_t> numbers) const override {
    std::vector<Features> out(numbers.size());
    if (numbers.empty()) return out;
    tessera_features found = {nullptr, 0, -1};
    calls_->call(
        [&] {
          return calls_->program().read(calls_->user(), held_out_ ? 1 : 0, numbers.data(),
                                        std::ssize(numbers), &found);
        },
        [&] {
          for (std::int64_t k = 0; k < found.count; ++k) {
            const tessera_feature& feature = found.features[k];
            feature.is_float != 0 ? add_feature<float>(out, feature)
                                  : add_feature<std::int32_t>(out, feature);
          }
        });
    calls_->note_unmasked(found.unmasked);
    return out;
  }

 private:
  std::shared_ptr<ProgramCalls> calls_;
  bool held_out_;
};

NamedMeans scores_of(ProgramCalls& calls, const EvalPrediction& eval) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const auto& [name, tensor] : eval.predictions)
    dims.emplace_back(tensor.shape().begin(), tensor.shape().end());
  std::vector<tessera_prediction> predictions;
  for (const auto& [name, tensor] : eval.predictions) {
    const std::vector<std::int64_t>& shape = dims[predictions.size()];
    predictions.push_back({name.c_str(), shape.data(), std::ssize(shape), tensor.data<float>()});
  }
  const tessera_score* scores = nullptr;
  std::int64_t count = 0;
  NamedMeans out;
  calls.call(
      [&] {
        return calls.program().score(calls.user(), predictions.data(), std::ssize(predictions),
                                     &scores, &count);
      },
      [&] {
        for (std::int64_t k = 0; k < count; ++k) out.emplace_back(scores[k].name, scores[k].value);
      });
  return out;
}

ModelOutput own_forward(ProgramCalls& calls, const Batch& batch, const Model& model, bool trains) {
  if (!batch.of_task()) calls.read_by(model.config());
  tessera_graph graph(batch.values().begin()->second.builder(), model, batch, trains);
  const std::string features = batch_json(batch);
  const char* out = nullptr;
  return calls.call(
      [&] { return calls.program().forward(calls.user(), &graph, features.c_str(), &out); },
      [&] { return forward_output(graph, out); });
}

}  // namespace

OwnFunctions functions_of(const tessera_program& program, ProgramUse use,
                          std::atomic<bool>& failed) {
  const bool evaluates = use == ProgramUse::Evaluate;
  require((program.train < 0 && program.valid < 0) || program.read != nullptr,
          "a program with datasets has no function to read them; give read");
  require(!evaluates || program.valid >= 0, "there is no dataset to evaluate; give valid");
  const auto calls = std::make_shared<ProgramCalls>(program, failed);
  OwnFunctions out;
  out.datasets = [calls, evaluates]() -> Datasets {
    const auto dataset = [&](bool held_out) -> std::shared_ptr<const MapDataset> {
      const std::int64_t size = held_out ? calls->program().valid : calls->program().train;
      return size < 0 ? nullptr : std::make_shared<ProgramDataset>(calls, held_out);
    };
    return {dataset(evaluates), dataset(true)};
  };
  out.provide = [] { return Provided(); };
  out.forward = [calls, evaluates](const Batch& batch, const Model& model) -> ModelOutput {
    if (calls->program().forward != nullptr) return own_forward(*calls, batch, model, !evaluates);
    if (batch.of_task()) return model.with_logits(batch);
    calls->read_by(model.config());
    return model.with_logits(model.filled(batch, /*labels=*/evaluates));
  };
  if (program.score != nullptr)
    out.metrics = [calls](const EvalPrediction& eval) { return scores_of(*calls, eval); };
  out.shuffled = program.shuffled != 0;
  out.reads_ahead = out.scores_validations = true;
  out.drops_unread = program.forward == nullptr;  // which may read more than the model does
  return out;
}

}  // namespace tessera
