/// A training loop of one's own: which numbers are above their mean, learned by a small network.
///
///   rapidformer --user-script own_loop.cpp --epochs 3 --devices 4

#include <cmath>
#include <iostream>

#include "tessera/rapidformer/rapidformer.h"

using namespace tessera;

// Rows of eight numbers; the label is whether the first half adds up to more than the second.
class Halves : public MapDataset {
 public:
  Halves(std::int64_t first, std::int64_t size) : first_(first), size_(size) {}
  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override {
    std::vector<float> row;
    float difference = 0;
    for (std::int64_t k = 0; k < 8; ++k) {
      row.push_back(static_cast<float>(std::sin(static_cast<double>((first_ + i) * 8 + k) * 12.9)));
      difference += k < 4 ? row.back() : -row.back();
    }
    return {{"row", row}, {"labels", difference > 0 ? 1 : 0}};
  }

 private:
  std::int64_t first_, size_;
};

// [own_loop]
int run_loop(RapidformerEngine& engine) {
  const Datasets data{std::make_shared<Halves>(0, 1024), std::make_shared<Halves>(1024, 256)};
  OptimizerConfig optimizer;
  optimizer.schedule = {.kind = ScheduleKind::Linear, .lr = 0.01};
  const auto forward = [](const Batch& batch, const Model&) -> ModelOutput {
    const Value hidden = relu(linear(batch["row"], "up", 32));
    const Value logits = linear(hidden, "down", 2);
    return {cross_entropy_mean(logits, batch["labels"]), {{"logits", logits}}};
  };
  engine.compose(data, {ModelChoice::own_layers(), optimizer}, forward);
  for (std::int64_t epoch = 1; epoch <= engine.args().epochs; ++epoch) {
    for (const SampleBatch& batch : engine.train_batches(epoch)) {
      const StepRecord step = engine.backward(batch);  // loss, gradients and update
      if (step.step % 32 == 0) std::cout << "step " << step.step << " loss " << step.loss << "\n";
    }
    const EvalPrediction eval = engine.gather();
    const NamedMeans scores = accuracy_and_f1(eval.argmax(), eval.labels());
    std::cout << "epoch " << epoch << " loss " << eval.loss << " accuracy " << scores[0].second
              << " f1 " << scores[1].second << std::endl;
  }
  return 0;
}
// [end]

int main(int argc, char** argv) {
  RapidformerEngine engine(argc, argv);
  return engine.run([&] { return run_loop(engine); });
}
