/// Vectors of texts beside sentence-transformers: twenty steps of its loss, on one device, on meshes
/// and in micro-batches. The file is described in tests/golden/README.md.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/models/family.h"
#include "train/golden_losses.h"

namespace tessera {
namespace {

struct SentenceCase {
  const char *family, *golden;  // the name of the losses
  std::int64_t texts;
  const char* pooling;
};

std::ostream& operator<<(std::ostream& out, const SentenceCase& c) {
  return out << c.family << " " << c.golden;
}

class SentenceLosses : public testing::TestWithParam<SentenceCase> {
 protected:
  SentenceLosses()
      : file_(repo_file(text("tests/golden/", GetParam().family, "_classes.safetensors"))) {
    model_ = published(FamilyRef(GetParam().family));
    model_.task = kSentenceEmbedding.name;
    model_.layers = 2, model_.heads = 4, model_.width = 32, model_.ffn_width = 128;
    model_.context = 16, model_.vocabulary = 61;
    model_.texts = GetParam().texts, model_.sentence_pooling = GetParam().pooling;
    complete(model_);
    task_ = task_of(model_);
    std::ifstream file(repo_file("tests/golden/sentence_losses.json"));
    losses_ = nlohmann::json::parse(file)
                  .at(text(GetParam().family, "_classes"))
                  .at(GetParam().golden)
                  .get<std::vector<double>>();
  }

  Bindings parameters(const Graph& graph) const {
    Bindings in;
    for (const State& state : graph.states()) {
      in.states.emplace(state.path, state.role == Role::Parameter
                                        ? file_.load("param." + state.path)
                                        : HostTensor(graph.type(state.value)));
    }
    return in;
  }

  std::map<std::string, HostTensor> batch(std::int64_t step) const {
    std::map<std::string, HostTensor> out;
    const std::int64_t texts = GetParam().texts;
    for (const TaskInput& input : task_.inputs)
      out.emplace(input.name, HostTensor(DType::I32, {4, texts, 16}));
    for (std::int64_t row = 0; row < 4 * texts; ++row) {
      const std::int64_t r = step * 4 * texts + row;
      for (std::int64_t k = 0; k < 3 + 5 * r % 14; ++k) {
        out.at("ids").set(row * 16 + k,
                          static_cast<double>(2 + (r * r * 31 + k * k * 17 + r * k) % 59));
        out.at("mask").set(row * 16 + k, 1);
      }
    }
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
};

TEST_P(SentenceLosses, AreTheirsOnEveryMesh) {
  std::vector<GoldenMesh> meshes(std::begin(kGoldenMeshes), std::end(kGoldenMeshes));
  meshes.push_back({"dp 2, micro-batches of 1", parallel_of(2, 1, 1, false, 1, 2)});
  ParallelConfig along = parallel_of(2, 1, 1, false, 0, 1);
  along.context = 2;
  meshes.push_back({"cp 2", along});
  golden().expect_on(meshes);
}

TEST_P(SentenceLosses, OfF32AreNear) {
  golden().expect_in_f32(std::array<std::int64_t, 3>{1, 2, 4}, 2e-5);
}

/// A row that is no sample is no candidate, and does not count.
TEST_P(SentenceLosses, LeaveRowsWithoutSamplesOut) {
  /// The sum and the count of losses in a batch of so many rows, of which three are samples.
  const auto measured = [&](std::int64_t rows) {
    const std::int64_t of_row = GetParam().texts * 16;
    Builder builder;
    TaskValues values;
    Bindings in;
    for (const auto& [name, all] : batch(0)) {
      HostTensor some(DType::I32, {rows, GetParam().texts, 16});
      for (std::int64_t i = 0; i < 3 * of_row; ++i) some.set(i, all.at(i));
      values.emplace(name, builder.batch(name, {DType::I32, some.shape(), {}}));
      in.batch.emplace(name, std::move(some));
    }
    const Mean loss = task_.measure(values, {}).means[0];
    builder.output(Output::Kind::Metric, "sum", loss.sum);
    builder.output(Output::Kind::Metric, "count", loss.count);
    const Graph graph = builder.finish();
    in.states = parameters(graph).states;
    const std::vector<HostTensor> out = interpret(graph, in, {});
    return std::pair(out[0].at(0), out[1].at(0));
  };
  const auto three = measured(3), four = measured(4);
  EXPECT_EQ(three.second, 3);
  EXPECT_EQ(four.second, 3);
  EXPECT_GT(three.first, 0);
  EXPECT_NEAR(four.first, three.first, 1e-6 * three.first);
}

INSTANTIATE_TEST_SUITE_P(Encoders, SentenceLosses,
                         testing::Values(SentenceCase{"bert", "pairs", 2, "mean"},
                                         SentenceCase{"bert", "triples", 3, "mean"},
                                         SentenceCase{"bert", "first", 2, "cls"},
                                         SentenceCase{"roberta", "pairs", 2, "mean"},
                                         SentenceCase{"roberta", "triples", 3, "mean"}),
                         [](const auto& info) {
                           return text(info.param.family, "_", info.param.golden);
                         });

}  // namespace
}  // namespace tessera
