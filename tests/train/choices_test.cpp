/// A choice that is none changes nothing, whatever stands in its place; labels of rows that are no
/// sample do not count.

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/passes/grad.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct ChoiceNumbers {
  double sum = 0, count = 0;
  std::vector<double> grads;
};

class Choices : public testing::TestWithParam<const char*> {
 protected:
  /// Of 12 samples of the same first two choices, padded to so many. `labels`: of the samples.
  ChoiceNumbers numbers(std::int64_t choices, const std::vector<std::int32_t>& labels) const {
    ModelConfig config = tiny(GetParam());
    config.texts = choices;
    config.dropout = config.classifier_dropout = 0;
    complete(config);
    const Task task = task_of(config);
    Builder builder;
    const Mean loss = task.measure(inputs_of(task, builder, 12), {}).means[0];
    std::vector<Value> parameters;
    for (const State& state : builder.so_far().states())
      parameters.emplace_back(builder, state.value);
    const std::vector<Value> grads = gradients(loss.sum, parameters);
    builder.output(Output::Kind::Metric, "sum", loss.sum);
    builder.output(Output::Kind::Metric, "count", loss.count);
    for (std::size_t i = 0; i < grads.size(); ++i)
      builder.output(Output::Kind::Metric, text("grad ", i), grads[i]);
    const Graph graph = builder.finish();
    Bindings in = random_inputs(graph, task);
    RandomNumbers next(7);
    const std::int64_t s = config.context;
    for (const char* const name : {"ids", "types", "mask"}) {
      const auto found = in.batch.find(name);
      if (found == in.batch.end()) continue;
      for (std::int64_t row = 0; row < 12 * choices; ++row) {
        for (std::int64_t k = 0; k < s; ++k) {
          const bool there = row % choices < 2, mask = std::string_view(name) == "mask";
          const double number = row % choices < 2 ? std::floor(next() * 2) : 1;
          found->second.set(row * s + k, mask ? (there ? (k < 5 ? 1 : 0) : 0) : number);
        }
      }
    }
    for (std::int64_t i = 0; i < 12; ++i)
      in.batch.at("labels").set(i, labels[static_cast<std::size_t>(i)]);
    const std::vector<HostTensor> out = interpret(graph, in, {});
    ChoiceNumbers found{out[0].at(0), out[1].at(0), {}};
    for (std::size_t i = 2; i < out.size(); ++i)
      for (std::int64_t k = 0; k < out[i].numel(); ++k) found.grads.push_back(out[i].at(k));
    return found;
  }
};

TEST_P(Choices, ThatAreNoneChangeNothing) {
  const std::vector<std::int32_t> labels = {0, 1, 1, 0, 1, kIgnoredLabel, 0, 0, 1, 1, 0, 1};
  const ChoiceNumbers two = numbers(2, labels), four = numbers(4, labels);
  EXPECT_EQ(two.count, 11);
  EXPECT_EQ(four.count, 11);
  EXPECT_GT(two.sum, 0);
  EXPECT_NEAR(four.sum, two.sum, 1e-9 * two.sum);
  ASSERT_EQ(four.grads.size(), two.grads.size());
  double most = 0;
  for (std::size_t i = 0; i < two.grads.size(); ++i) {
    EXPECT_NEAR(four.grads[i], two.grads[i], 1e-9) << i;
    most = std::max(most, std::abs(two.grads[i]));
  }
  EXPECT_GT(most, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Families, Choices,
                         testing::Values("bert-choices", "roberta-choices", "deberta-v2-choices",
                                         "modernbert-choices"),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace tessera
