/// A user script: GPT-2 on token files, with a loss of its own.
///
///   rapidformer --user-script pretrainer.cpp --data-path data/books_text_document ...

// [pretrainer]
#include "tessera/rapidformer/rapidformer.h"

using namespace tessera;

class MyGPTPreTrainer : public PreTrainer {
 public:
  using PreTrainer::PreTrainer;

  // Megatron-LM's token files, as preprocess_data makes them: "text" has seq-length + 1 tokens.
  Datasets train_valid_test_datasets_provider(const NumSamples& train_valid_num_samples) override {
    return build_train_valid_test_datasets(get_args(), train_valid_num_samples);
  }

  Provided model_optimizer_lr_scheduler_provider() override { return {ModelChoice("gpt2")}; }

  // Tokens behind the end of a document, --eod-token, are not predicted.
  ModelOutput run_forward_step(const Batch& batch, const Model& model) override {
    const RunConfig& args = get_args();
    const Value text = batch["text"];
    const Value tokens = slice(text, 1, 0, args.model.context);
    const Value labels = slice(text, 1, 1, args.model.context);
    const Value eod = text.builder().constant(static_cast<double>(args.eod_token), DType::I32);
    const Value loss_mask = cast(not_equal(tokens, eod), DType::F32) * batch.is_sample(2);
    const Value losses = cross_entropy(model.logits(tokens), labels).loss;
    return masked_mean(losses, loss_mask);
  }
};

int main(int argc, char** argv) {
  RapidformerEngine engine(argc, argv);
  MyGPTPreTrainer trainer(engine);
  return trainer.train();
}
// [end]
