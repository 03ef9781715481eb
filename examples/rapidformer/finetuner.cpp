/// A user script: BERT learns which pairs of sentences mean the same, as in GLUE's MRPC.

#include "tessera/rapidformer/rapidformer.h"

using namespace tessera;

// [finetuner]
// Rows of a table with the columns of GLUE's files: two sentences, and a label.
class SentencePairs : public MapDataset {
 public:
  SentencePairs(const std::string& file, Tokenizer tokenizer, std::int64_t length)
      : table_(read_table(file, std::vector<std::string>{"#1 String", "#2 String", "Quality"})),
        tokenizer_(std::move(tokenizer)),
        length_(length) {}
  std::int64_t size() const override { return table_.rows(); }
  Features get(std::int64_t i) const override {
    const auto cell = [&](int column) { return table_.columns.at(column).at(i); };
    Features sample = tokenized(tokenizer_, cell(0), cell(1), length_);
    sample["labels"] = std::stoi(cell(2));
    return sample;
  }

 private:
  Table table_;
  Tokenizer tokenizer_;
  std::int64_t length_;
};

class MyFinetuner : public Finetuner {
 public:
  using Finetuner::Finetuner;

  Datasets train_valid_test_datasets_provider() override {
    const RunConfig& args = get_args();
    const Tokenizer tokenizer = get_tokenizer();
    const auto rows = [&](const std::vector<std::string>& files) {
      return std::make_shared<SentencePairs>(files.at(0), tokenizer, args.model.context);
    };
    return {rows(args.data), rows(args.valid_data),
            args.test_data.empty() ? nullptr : rows(args.test_data)};
  }

  // model(**batch): the loss of its task and, as "logits", what it predicts.
  ModelOutput run_forward_step(const Batch& batch, const Model& model) override {
    return model(batch);
  }

  // After each epoch, on the held-out rows, gathered from all devices.
  NamedMeans run_compute_metrics(const EvalPrediction& eval) override {
    return accuracy_and_f1(eval.argmax("logits"), eval.labels("labels"));
  }
};
// [end]

int main(int argc, char** argv) {
  RapidformerEngine engine(argc, argv);
  MyFinetuner trainer(engine);
  return trainer.train();
}
