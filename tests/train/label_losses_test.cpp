/// Fine-tuning on labels that are numbers, or of which a text has several, beside transformers: twenty
/// steps of its losses, on one device and on meshes. The file is described in tests/golden/README.md.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/models/family.h"
#include "tessera/models/task_kind.h"
#include "train/golden_losses.h"

namespace tessera {
namespace {

struct LabelLossCase {
  const char *family, *golden;  // the name of the losses
  TaskKind task;
  std::int64_t numbers;
};

std::ostream& operator<<(std::ostream& out, const LabelLossCase& c) {
  return out << c.family << " " << c.golden;
}

class LabelLosses : public testing::TestWithParam<LabelLossCase> {
 protected:
  LabelLosses()
      : file_(repo_file(text("tests/golden/", GetParam().family, "_classes.safetensors"))) {
    const bool llama = std::string_view(GetParam().family) == "llama";
    model_ = published(FamilyRef(GetParam().family));
    model_.task = GetParam().task.name;
    model_.layers = 2, model_.heads = 4, model_.width = 32;
    model_.kv_heads = llama ? 2 : 0;
    model_.ffn_width = llama ? 86 : 128;
    model_.context = 16, model_.vocabulary = 61;
    model_.classes = GetParam().numbers;
    complete(model_);
    task_ = task_of(model_);
    std::ifstream file(repo_file("tests/golden/label_losses.json"));
    losses_ = nlohmann::json::parse(file)
                  .at(text(GetParam().family, "_classes"))
                  .at(GetParam().golden)
                  .get<std::vector<double>>();
  }

  Bindings parameters(const Graph& graph) const {
    Bindings in;
    for (const State& state : graph.states()) {
      const Shape& shape = graph.type(state.value).shape;
      in.states.emplace(state.path, state.role == Role::Parameter
                                        ? first_rows(file_.load("param." + state.path), shape)
                                        : HostTensor(graph.type(state.value)));
    }
    return in;
  }

  std::map<std::string, HostTensor> batch(std::int64_t step) const {
    std::map<std::string, HostTensor> out;
    for (const TaskInput& input : task_.inputs) {
      if (input.name == "labels") continue;
      const HostTensor all = file_.load("step_" + input.name);
      Shape shape = all.shape();
      shape.erase(0);
      HostTensor& of_step = out.emplace(input.name, HostTensor(all.dtype(), shape)).first->second;
      for (std::int64_t i = 0; i < of_step.numel(); ++i)
        of_step.set(i, all.at(step % 10 * of_step.numel() + i));
    }
    HostTensor labels(DType::F32, {4, GetParam().numbers});
    for (std::int64_t row = 0; row < 4; ++row) {
      for (std::int64_t k = 0; k < GetParam().numbers; ++k) {
        const std::int64_t n = (step % 10 * 4 + row) * 3 + k;
        const bool one_of_several = GetParam().task.name == kMultiLabelClassification.name;
        labels.set(row * GetParam().numbers + k, one_of_several
                                                     ? static_cast<double>(7 * n % 5 < 2)
                                                     : static_cast<double>(37 * n % 50) / 10);
      }
    }
    out.emplace("labels", labels);
    return out;
  }

  GoldenLosses golden() const {
    return {model_, task_, losses_, [this](const Graph& graph) { return parameters(graph); },
            [this](std::int64_t step) { return batch(step); }};
  }

  SafetensorsFile file_;
  ModelConfig model_;
  Task task_;
  std::vector<double> losses_;

 private:
  /// Of a classifier with fewer rows than the file's.
  static HostTensor first_rows(const HostTensor& all, const Shape& shape) {
    HostTensor out(DType::F32, shape);
    for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, all.at(i));
    return out;
  }
};

TEST_P(LabelLosses, AreThoseOfTransformersOnEveryMesh) { golden().expect_on(kGoldenMeshes); }

TEST_P(LabelLosses, OfF32AreNear) {
  golden().expect_in_f32(std::array<std::int64_t, 2>{1, 4}, 1e-5);
}

/// A row that is no sample does not count, whatever is predicted of it.
TEST_P(LabelLosses, LeaveRowsWithoutLabelsOut) {
  Builder builder;
  TaskValues values;
  std::map<std::string, HostTensor> inputs = batch(0);
  for (const auto& [name, tensor] : inputs)
    values.emplace(name, builder.batch(name, {tensor.dtype(), tensor.shape(), {}}));
  const Measured measured = task_.measure(values, {});
  builder.output(Output::Kind::Metric, "sum", measured.means[0].sum);
  builder.output(Output::Kind::Metric, "count", measured.means[0].count);
  const Graph graph = builder.finish();
  Bindings in = parameters(graph);
  in.batch.insert(inputs.begin(), inputs.end());
  const std::vector<HostTensor> all = interpret(graph, in, {});
  const std::int64_t k = GetParam().numbers;
  HostTensor& labels = in.batch.at("labels");
  double rest = all[0].at(0);
  EXPECT_EQ(all[1].at(0), static_cast<double>(4 * k));
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t i = 0; i < k; ++i) labels.set(row * k + i, kIgnoredNumber);
    const std::vector<HostTensor> some = interpret(graph, in, {});
    EXPECT_EQ(some[1].at(0), static_cast<double>((3 - row) * k));
    EXPECT_LT(some[0].at(0), rest);
    rest = some[0].at(0);
  }
  EXPECT_EQ(rest, 0);
}

std::vector<LabelLossCase> label_loss_cases() {
  std::vector<LabelLossCase> out;
  for (const char* const family : {"bert", "roberta", "llama"}) {
    out.push_back({family, "regression", kRegression, 3});
    out.push_back({family, "regression_of_one", kRegression, 1});
    out.push_back({family, "multi_label", kMultiLabelClassification, 3});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Families, LabelLosses, testing::ValuesIn(label_loss_cases()),
                         [](const auto& info) {
                           return text(info.param.family, "_", info.param.golden);
                         });

}  // namespace
}  // namespace tessera
