/// ELECTRA's pretraining: what PyTorch computes of given drawn tokens, the tokens that are drawn,
/// and runs on meshes, which draw the same ones. tools/golden/electra.py makes the file.

#include "tessera/models/replaced_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/files/safetensors.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/rewrite.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/pretrained/save_pretrained.h"
#include "train/golden_run.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

constexpr std::int64_t kSamplesOfFile = 4, kTokensOfFile = 16;

ModelConfig electra_of_file(std::int64_t masked_positions) {
  ModelConfig c = published("electra");
  c.layers = 2, c.heads = 4, c.width = 32, c.ffn_width = 128;
  c.embedding_width = 20, c.generator_width = 16;
  c.context = kTokensOfFile, c.vocabulary = 61, c.masked_positions = masked_positions;
  complete(c);
  return c;
}

/// The same graph, to which drawn tokens are given as an input. Random numbers are left over.
struct GivenTokens {
  explicit GivenTokens(const Graph& graph) : all(graph) {
    int drawn = 0;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op != &kMin) {
        all.copy(id);
        continue;
      }
      ++drawn;
      all.map({id, 0}, all.to().batch("drawn", node.type()));
    }
    EXPECT_EQ(drawn, 1);
  }
  Rewrite all;
};

/// With k masked positions, or 0: at all positions.
class GoldenElectra : public testing::TestWithParam<std::int64_t> {
 protected:
  std::map<std::string, HostTensor> batch(std::int64_t step = -1) const {
    std::map<std::string, HostTensor> out;
    for (const char* name : {"ids", "mask", "labels", "drawn"}) {
      HostTensor whole = file_.load(step < 0 ? std::string(name) : text("step_", name));
      HostTensor part(DType::I32, {kSamplesOfFile, kTokensOfFile});
      for (std::int64_t i = 0; i < part.numel(); ++i)
        part.set(i, whole.at(std::max<std::int64_t>(step, 0) * part.numel() + i));
      out.emplace(name, part);
    }
    if (GetParam() > 0) keep_masked(out);
    return out;
  }

  static void keep_masked(std::map<std::string, HostTensor>& batch) {
    const std::int64_t k = GetParam();
    HostTensor positions(DType::I32, {kSamplesOfFile, k}), labels(DType::I32, {kSamplesOfFile, k}),
        drawn(DType::I32, {kSamplesOfFile, k});
    for (std::int64_t row = 0; row < kSamplesOfFile; ++row) {
      std::int64_t n = 0;
      for (std::int64_t i = 0; i < kTokensOfFile; ++i) {
        const std::int64_t from = row * kTokensOfFile + i, to = row * k + n;
        if (batch.at("labels").at(from) == kIgnoredLabel) continue;
        ASSERT_LT(n++, k);
        positions.set(to, static_cast<double>(i));
        labels.set(to, batch.at("labels").at(from));
        drawn.set(to, batch.at("drawn").at(from));
      }
      for (; n < k; ++n) labels.set(row * k + n, kIgnoredLabel), drawn.set(row * k + n, 7);
    }
    batch["masked_positions"] = positions;
    batch["labels"] = labels;
    batch["drawn"] = drawn;
  }

  Bindings begin(const Graph& graph) const {
    Bindings in;
    for (const State& state : graph.states())
      in.states.emplace(state.path, state.role == Role::Parameter
                                        ? file_.load("param." + state.path)
                                        : HostTensor(graph.type(state.value)));
    return in;
  }

  SafetensorsFile file_{repo_file("tests/golden/electra.safetensors")};
  ModelConfig model_ = electra_of_file(GetParam());
  Task task_ = task_of(model_);
};

TEST_P(GoldenElectra, LossesAndEveryGradient) {
  Builder builder;
  const TaskValues values = inputs_of(task_, builder, kSamplesOfFile);
  const std::vector<Mean> means =
      task_
          .measure(values, {.step = builder.state("step", {DType::I64, {}, {}}, Role::Counter, {})})
          .means;
  builder.output(Output::Kind::Metric, "mlm_loss", means.at(0).value());
  builder.output(Output::Kind::Metric, "rtd_loss", means.at(1).value());
  builder.output(Output::Kind::Metric, "loss", loss_of(task_, means));
  const Graph drawing = builder.finish();
  GivenTokens given(drawing);
  std::vector<Value> parameters;
  std::vector<std::string> paths;
  for (const State& state : drawing.states()) {
    if (state.role != Role::Parameter) continue;
    parameters.push_back(given.all(state.value));
    paths.push_back(state.path);
  }
  const std::vector<Value> grads =
      gradients(given.all(drawing.output(Output::Kind::Metric, "loss")), parameters);
  for (std::size_t i = 0; i < grads.size(); ++i)
    given.all.to().output(Output::Kind::Metric, "grad." + paths[i], grads[i]);
  const Graph graph = given.all.finish();
  std::set<std::string> all;
  for (const StoredTensor& tensor : file_.tensors()) {
    if (tensor.name.starts_with("grad.")) all.insert(tensor.name);
  }
  for (const GoldenMesh& mesh : kGoldenMeshes) {
    SCOPED_TRACE(mesh.name);
    std::set<std::string> left = all;  // that nobody looked at
    Bindings in = begin(graph);
    in.batch = {};
    for (const auto& [name, tensor] : batch()) in.batch[name] = tensor;
    for (const auto& [name, found] : GoldenRun(graph, mesh, model_)(in)) {
      // The reference is computed in f64 and rounded to f32: 2^-24.
      EXPECT_LT(difference(found, file_.load(name)), 1e-6) << name;
      left.erase(name);
    }
    EXPECT_TRUE(left.empty()) << *left.begin() << " of the reference has none here";
  }
}

TEST_P(GoldenElectra, TenSteps) {
  const Graph graph = GivenTokens(train_step(task_, golden_recipe(), kSamplesOfFile)).all.finish();
  const HostTensor losses = file_.load("losses"), norms = file_.load("grad_norms");
  for (const GoldenMesh& mesh : kGoldenMeshes) {
    SCOPED_TRACE(mesh.name);
    Bindings in = begin(graph);
    const GoldenRun run(graph, mesh, model_);
    for (std::int64_t step = 0; step < losses.numel(); ++step) {
      for (const auto& [name, tensor] : batch(step)) in.batch[name] = tensor;
      const std::map<std::string, HostTensor> out = run(in);
      EXPECT_NEAR(out.at("loss").at(0), losses.at(step), 1e-6 * losses.at(step)) << step;
      EXPECT_NEAR(out.at("grad_norm").at(0), norms.at(step), 1e-6 * norms.at(step)) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Positions, GoldenElectra, testing::Values(0, 12));

/// Tokens that are drawn for rows of the same logits.
HostTensor drawn(const std::vector<double>& logits, std::int64_t rows, std::int64_t step) {
  const std::int64_t v = std::ssize(logits);
  Builder builder;
  const Value x = builder.batch("logits", {DType::F32, {rows, v}, {}}),
              at = builder.state("step", {DType::I64, {}, {}}, Role::Counter, {});
  builder.output(Output::Kind::Metric, "drawn", drawn_tokens(x, at, "drawn"));
  Bindings in;
  HostTensor all(DType::F32, {rows, v}), number(DType::I64, {});
  for (std::int64_t i = 0; i < all.numel(); ++i)
    all.set(i, logits[static_cast<std::size_t>(i % v)]);
  number.set(0, static_cast<double>(step));
  in.batch.emplace("logits", all);
  in.states.emplace("step", number);
  return interpret(builder.finish(), in, {})[0];
}

TEST(DrawnTokens, AreAsFrequentAsSoftmaxSays) {
  // One that is never drawn, two that are alike, and a hundred that are rare.
  std::vector<double> logits = {1.5, -200, 0.3, 0.3, 2};
  logits.resize(105, -4);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  constexpr std::int64_t kRows = 40'000;
  const HostTensor ids = drawn(logits, kRows, 3);
  std::vector<double> count(logits.size());
  for (std::int64_t i = 0; i < kRows; ++i) ++count.at(static_cast<std::size_t>(ids.at(i)));
  double chi = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double wanted = kRows * std::exp(logits[i]) / sum;
    if (wanted < 1) {
      EXPECT_EQ(count[i], 0);
      continue;
    }
    chi += (count[i] - wanted) * (count[i] - wanted) / wanted;
  }
  EXPECT_LT(chi, 103 + 4 * std::sqrt(2 * 103.0)) << "of 103 degrees of freedom";
}

TEST(DrawnTokens, AreOthersAtEveryStep) {
  const std::vector<double> even(50, 0.0);
  const HostTensor a = drawn(even, 200, 0), b = drawn(even, 200, 1), again = drawn(even, 200, 0);
  std::int64_t same = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    same += a.at(i) == b.at(i);
    EXPECT_EQ(a.at(i), again.at(i));
  }
  EXPECT_LT(same, 20);  // 4 by chance
}

TEST(Generator, HasSizesInProportion) {
  ModelConfig c = published("electra");
  c.width = 768, c.heads = 12, c.ffn_width = 3072;
  const auto sizes = [](const ModelConfig& of) {
    const ModelConfig g = generator_of(of);
    return text(g.width, " ", g.heads, " ", g.ffn_width, " ", g.embedded(), " ", g.layers);
  };
  EXPECT_EQ(sizes(c), "192 3 768 768 4");
  c.generator_width = 256, c.embedding_width = 128;
  EXPECT_EQ(sizes(c), "256 4 1024 128 4");
  c.width = 64, c.heads = 2, c.ffn_width = 0, c.generator_width = 0;
  EXPECT_EQ(sizes(c), "16 1 64 128 4") << "one head at least";
  c.width = 60, c.heads = 12;
  EXPECT_EQ(sizes(c), "15 3 60 128 4");
  c.width = 40, c.heads = 20;
  EXPECT_EQ(sizes(c), "10 5 40 128 4");
  c.width = 28, c.heads = 14;
  EXPECT_EQ(sizes(c), "7 1 28 128 4") << "heads divide the width";
}

/// Parameters by name.
using Parameters = std::map<std::string, HostTensor, std::less<>>;

ParameterReader reader_of(const Parameters& all, std::map<std::string, Shape>& shapes) {
  for (const auto& [name, tensor] : all) shapes.emplace(name, tensor.shape());
  return {[&](std::string_view name) -> const Shape* {
            const auto found = shapes.find(std::string(name));
            return found == shapes.end() ? nullptr : &found->second;
          },
          [&](std::string_view name, std::span<float> out) {
            std::ranges::copy(all.find(name)->second.bytes(), std::as_writable_bytes(out).begin());
          }};
}

bool is_of_generator(std::string_view name) {
  return name.starts_with("generator") || name.starts_with("embed.generator");
}

/// tests/golden/hub/electra is the discriminator as transformers saves it.
TEST(ElectraFolders, HaveTheDiscriminator) {
  const SafetensorsFile file(repo_file("tests/golden/electra.safetensors"));
  const std::string folder = repo_file("tests/golden/hub/electra");
  Parameters ours;
  std::size_t of_generator = 0;
  for (const StoredTensor& stored : file.tensors()) {
    if (!stored.name.starts_with("param.")) continue;
    const std::string name = stored.name.substr(6);
    ours.emplace(name, file.load(stored.name));
    of_generator += is_of_generator(name);
  }
  const PretrainedModel theirs = PretrainedModel::open(folder);
  EXPECT_TRUE(theirs.notices().empty()) << join(theirs.notices());
  ModelConfig model = electra_of_file(0);
  EXPECT_EQ(theirs.config().task, "pretraining");
  EXPECT_EQ(theirs.parameters().size(), ours.size() - of_generator);
  for (const auto& [name, shape] : theirs.parameters()) {
    HostTensor found(DType::F32, shape);
    read_whole(theirs, name, found.bytes());
    EXPECT_TRUE(std::ranges::equal(found.bytes(), ours.at(name).bytes())) << name;
  }
  const TestFolder scratch;
  std::map<std::string, Shape> shapes;
  const std::vector<std::string> left_out =
      save_pretrained(scratch / "out", model, reader_of(ours, shapes));
  EXPECT_EQ(left_out.size(), of_generator);
  EXPECT_TRUE(std::ranges::all_of(left_out, is_of_generator)) << join(left_out);
  const SafetensorsFile written(scratch / "out/model.safetensors"),
      wanted(folder + "/model.safetensors");
  EXPECT_EQ(written.tensors().size(), wanted.tensors().size());
  for (const StoredTensor& stored : wanted.tensors()) {
    ASSERT_NE(written.find(stored.name), nullptr) << stored.name;
    EXPECT_TRUE(
        std::ranges::equal(written.load(stored.name).bytes(), wanted.load(stored.name).bytes()))
        << stored.name;
  }
}

class ElectraRun : public TrainerTest {
 protected:
  RunConfig electra(const std::string& output, std::int64_t masked_positions) const {
    RunConfig out = config(output);
    out.model = published("electra");
    out.model.layers = 2, out.model.heads = 8, out.model.width = 64;
    out.model.embedding_width = 24, out.model.context = out.model.positions = 32;
    out.model.vocabulary = 0;
    out.model.masked_positions = masked_positions;
    out.sample_every = 0;
    out.steps = 10;
    out.eval_every = 5;
    out.defaulted = {"vocab-size"};
    return out;
  }
};

/// In f32, sums of other orders draw another token where two are within some 1e-6 of each other:
/// here that is so of none of some thousand.
TEST_F(ElectraRun, EveryMeshDrawsTheSameTokens) {
  for (const std::int64_t masked_positions : {0, 6}) {
    const std::string name = text("one", masked_positions);
    RunConfig one = electra(name, masked_positions);
    run(one);
    RunConfig tensor = one, data = one, stages = one;
    tensor.parallel.devices = tensor.parallel.tensor = 2;
    data.parallel.devices = 2;
    data.parallel.shard_parameters = true;
    stages.parallel.devices = stages.parallel.pipeline = 2;
    stages.micro_batch_size = 4;
    int number = 0;
    for (RunConfig* const mesh : {&tensor, &data, &stages}) {
      const std::string here = text("mesh", masked_positions, "-", number++);
      mesh->output = folder_ + "/" + here;
      run_on_ranks(*mesh);
      for (const std::string kind : {"train", "valid"}) {
        const nlohmann::json a = last(name, kind), b = last(here, kind);
        for (const char* part : {"loss", "mlm_loss", "rtd_loss"})
          EXPECT_NEAR(double(b.at(part)), double(a.at(part)), 1e-5 * double(a.at(part)))
              << here << " " << kind << " " << part;
        for (const char* part : {"mlm_accuracy", "rtd_accuracy"})
          EXPECT_NEAR(double(b.at(part)), double(a.at(part)), 1e-6) << here << " " << part;
      }
    }
    const nlohmann::json a = last(name, "train");
    const double sum = double(a.at("mlm_loss")) + 50 * double(a.at("rtd_loss"));
    EXPECT_NEAR(double(a.at("loss")), sum, 1e-5 * sum);
  }
}

TEST_F(ElectraRun, AnInterruptedRunIsTheUndisturbedOneBitByBit) {
  RunConfig whole = electra("whole", 5);
  run(whole);
  RunConfig parts = whole;
  parts.output = folder_ + "/parts";
  parts.exit_interval = 4;
  run(parts);
  parts.exit_interval = 0;
  EXPECT_EQ(run(parts).ending, Ending::Finished);
  EXPECT_EQ(digest_of("parts"), digest_of("whole"));
  EXPECT_EQ(losses("parts"), losses("whole"));
}

struct Told : TrainCallback {
  void on_notice(const std::string& notice) override { all += notice + "\n"; }
  std::string all;
};

/// The parameters of the first checkpoint of a run.
Parameters weights_of(const std::string& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  Parameters out;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (entry.role != Role::Parameter) continue;
    HostTensor tensor(entry.type);
    checkpoint.read(entry.name, tensor.bytes());
    out.emplace(entry.name, tensor);
  }
  return out;
}

TEST_F(ElectraRun, FoldersBeginAGeneratorAnewAndFineTuningLeavesItOut) {
  RunConfig first = electra("first", 4);
  first.steps = 2, first.eval_every = 0;
  first.vocabulary = VocabularyKind::Bytes;
  run(first);
  const Parameters ours = weights_of(folder_ + "/first");
  std::map<std::string, Shape> shapes;
  RunConfig complete_first = first;
  complete_first.model.vocabulary = ours.at("embed.token.weight").shape()[0];
  save_pretrained(folder_ + "/hub", complete_first.model, reader_of(ours, shapes));

  // Rate 0: what a run ends with is what it began with.
  RunConfig again = first;
  again.output = folder_ + "/again";
  again.steps = 1;
  again.optimizer.schedule.lr = again.optimizer.schedule.min_lr = 0;
  again.init_from = folder_ + "/hub";
  again.model.generator_width = 24;
  Told of_folder;
  run(again, {.callbacks = {&of_folder}});
  const Parameters begun = weights_of(again.output);
  for (const auto& [name, tensor] : begun) {
    if (is_of_generator(name)) {
      EXPECT_NE(of_folder.all.find(name), std::string::npos) << of_folder.all;
    } else {
      EXPECT_TRUE(std::ranges::equal(tensor.bytes(), ours.at(name).bytes())) << name;
    }
  }
  EXPECT_NE(of_folder.all.find("which are initialized at random"), std::string::npos);
  EXPECT_EQ(begun.at("generator.layers.0.norm1.weight").shape(), Shape{24});

  std::ofstream(folder_ + "/rows.tsv") << "sentence\tlabel\nthe one\tyes\nthe two\tno\n"
                                       << "the three\tyes\nthe four\tno\n";
  RunConfig labels = again;
  labels.output = folder_ + "/labels";
  labels.init_from = folder_ + "/first";
  labels.model.task = kSequenceClassification;
  labels.model.masked_positions = 0, labels.model.generator_width = 0;
  labels.data = labels.valid_data = {folder_ + "/rows.tsv"};
  labels.global_batch_size = 2;
  Told of_labels;
  run(labels, {.callbacks = {&of_labels}});
  std::size_t taken = 0;
  for (const auto& [name, tensor] : weights_of(labels.output)) {
    EXPECT_FALSE(is_of_generator(name)) << name;
    if (!ours.contains(name)) continue;
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), ours.at(name).bytes())) << name;
    ++taken;
  }
  EXPECT_EQ(taken, 5 + 2 + 2 * 12u) << "tables and their norm, the projection, layers";
  EXPECT_NE(of_labels.all.find("lacks classifier.dense.weight"), std::string::npos)
      << of_labels.all;
}

}  // namespace
}  // namespace tessera
