/// Tiny models of transformers' families, read from its folders, against what it computes: logits,
/// loss, every gradient, five steps of AdamW, texts; and written as it writes them.
/// tools/golden/families.py makes tests/golden/families; a folder there is a case. Its flags.txt has
/// flags of ours for what no config.json says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/comm/local.h"
#include "tessera/config/fields.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/ops/softmax.h"
#include "tessera/passes/grad.h"
#include "tessera/pretrained/hub/hub_config.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/pretrained/save_pretrained.h"
#include "tessera/train/programs.h"
#include "tessera/train/text_model.h"
#include "train/golden_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> family_folders() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(repo_file("tests/golden/families")))
    out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

bool has_text(const std::string& folder) {
  const SafetensorsFile file(
      repo_file(text("tests/golden/families/", folder, "/golden.safetensors")));
  return file.find("text") != nullptr;
}

std::vector<std::string> folders_with_texts() {
  std::vector<std::string> out = family_folders();
  std::erase_if(out, [](const std::string& folder) { return !has_text(folder); });
  return out;
}

HostTensor whole_parameter(const PretrainedModel& from, const std::string& name) {
  HostTensor out(DType::F32, from.parameters().at(name));
  read_whole(from, name, out.bytes());
  return out;
}

/// Zeros in place of gradients that are none but for rounding, such as that of what is added to all
/// logits of a softmax.
HostTensor without_rounding(HostTensor values) {
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    if (std::abs(values.at(i)) < 1e-12) values.set(i, 0);
  }
  return values;
}

class Families : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return repo_file(text("tests/golden/families/", GetParam())); }

  /// The gradients in our layout: as if they were the folder's weights.
  PretrainedModel gradients_of(const TestFolder& scratch) const {
    fs::copy_file(folder() + "/config.json", scratch / "config.json");
    std::vector<HostTensor> tensors;
    std::vector<TensorSource> sources;
    for (const StoredTensor& stored : file_.tensors()) {
      if (stored.name.starts_with("grad.")) tensors.push_back(file_.load(stored.name));
    }
    auto tensor = tensors.begin();
    for (const StoredTensor& stored : file_.tensors()) {
      if (!stored.name.starts_with("grad.")) continue;
      sources.push_back(TensorSource::of(stored.name.substr(5), tensor->type(), tensor->bytes()));
      ++tensor;
    }
    write_safetensors(scratch / "model.safetensors", std::move(sources), {{"format", "pt"}});
    return PretrainedModel::open(scratch.path());
  }

  /// The states of a graph: the folder's parameters, all else 0.
  Bindings begin(const Graph& graph) const {
    Bindings in;
    for (const State& state : graph.states())
      in.states.emplace(state.path, is_of_model(state.role) ? whole_parameter(theirs_, state.path)
                                                            : HostTensor(graph.type(state.value)));
    return in;
  }

  /// What the task reads: of tensors in.NAME, without "in.".
  std::vector<std::string> inputs() const {
    std::vector<std::string> out;
    for (const StoredTensor& stored : file_.tensors()) {
      if (stored.name.starts_with("in.")) out.push_back(stored.name.substr(3));
    }
    return out;
  }

  HostTensor of_step(const std::string& name, std::int64_t step) const {
    const HostTensor all = file_.load(text("steps.", name));
    Shape shape = all.shape();
    shape.erase(0);
    HostTensor out(all.dtype(), shape);
    for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, all.at(step * out.numel() + i));
    return out;
  }

  ModelConfig sampled(ModelConfig model) const {
    if (fs::exists(folder() + "/flags.txt")) {
      RunConfig run;
      run.model = model;
      for (const std::string& flag : split(read_file(folder() + "/flags.txt"), '\n')) {
        if (flag.empty()) continue;
        const std::vector<std::string> parts = split(flag, ' ');  // --NAME VALUE
        set_text(*find_field(parts.at(0).substr(2)).field, run, parts.at(1), parts[0]);
      }
      model = run.model;
    }
    if (file_.find("in.ids") != nullptr) {
      const Shape ids = file_.load("in.ids").shape();
      model.context = ids[ids.ndim() - 1];
      if (ids.ndim() == 3) model.texts = ids[1];
    }
    if (file_.find("in.source") != nullptr)
      model.source_context = file_.load("in.source").shape()[1];
    complete(model);
    return model;
  }

  void is_written_as_another(const ParameterReader& reader, const TestFolder& scratch);

  Tokens tokens(const char* name) const {
    const HostTensor found = file_.load(name);
    return Tokens(found.data<std::int32_t>(), found.data<std::int32_t>() + found.numel());
  }

  SafetensorsFile file_{folder() + "/golden.safetensors"};
  PretrainedModel theirs_ = PretrainedModel::open(folder());
  ModelConfig model_ = sampled(theirs_.config());
  Task task_ = task_of(model_);
};

TEST_P(Families, LogitsLossAndEveryGradient) {
  EXPECT_TRUE(theirs_.notices().empty()) << join(theirs_.notices());
  Builder builder;
  TaskValues values;
  for (const std::string& name : inputs()) {
    const HostTensor given = file_.load("in." + name);
    values.emplace(name, builder.batch(name, {given.dtype(), given.shape(), {}}));
  }
  const Measured measured = task_.measure(values, {});
  const Value loss = loss_of(task_, measured.means);
  const Graph& forward = builder.so_far();
  std::vector<NamedValue> shown;  // what the file has of what the model makes
  for (const NamedValue& predicted : measured.predictions) {
    if (file_.find(predicted.name) != nullptr) shown.push_back(predicted);
  }
  if (shown.empty()) {
    const auto entropy = std::ranges::find(forward.nodes(), &kCrossEntropy, &Node::op);
    ASSERT_NE(entropy, forward.nodes().end());
    shown.push_back({"logits", Value(builder, entropy->inputs[0])});
  }
  shown.push_back({"loss", loss});
  std::vector<Value> parameters;
  for (const State& state : forward.states()) parameters.emplace_back(builder, state.value);
  const std::vector<Value> grads = gradients(loss, parameters);
  for (const auto& [name, value] : shown) builder.output(Output::Kind::Metric, name, value);
  const std::vector<State> states = builder.so_far().states();
  for (std::size_t i = 0; i < grads.size(); ++i)
    builder.output(Output::Kind::Metric, states[i].path, grads[i]);
  const Graph graph = builder.finish();
  const TestFolder scratch;
  const PretrainedModel wanted = gradients_of(scratch);
  EXPECT_EQ(wanted.parameters().size(), states.size());
  for (const GoldenMesh& mesh : kGoldenMeshes) {
    SCOPED_TRACE(mesh.name);
    Bindings in = begin(graph);
    for (const std::string& name : inputs()) in.batch[name] = file_.load("in." + name);
    for (const auto& [name, found] : GoldenRun(graph, mesh, model_)(in)) {
      const bool of_file = std::ranges::find(shown, name, &NamedValue::name) != shown.end();
      // The reference is computed in f64 and rounded to f32: 2^-24.
      const HostTensor right = of_file ? file_.load(name) : whole_parameter(wanted, name);
      EXPECT_LT(difference(without_rounding(found), without_rounding(right)), 1e-6) << name;
    }
  }
}

TEST_P(Families, FiveSteps) {
  const Graph graph =
      train_step(task_, golden_recipe(), file_.load("in." + inputs()[0]).shape()[0]);
  const HostTensor losses = file_.load("losses"), norms = file_.load("grad_norms");
  for (const GoldenMesh& mesh : kGoldenMeshes) {
    SCOPED_TRACE(mesh.name);
    Bindings in = begin(graph);
    const GoldenRun run(graph, mesh, model_);
    for (std::int64_t step = 0; step < losses.numel(); ++step) {
      for (const std::string& name : inputs()) in.batch[name] = of_step(name, step);
      const std::map<std::string, HostTensor> out = run(in);
      EXPECT_NEAR(out.at("loss").at(0), losses.at(step), 1e-6) << "step " << step;
      EXPECT_NEAR(out.at("grad_norm").at(0), norms.at(step), 1e-5) << "step " << step;
    }
  }
}

TEST_P(Families, TextsAreOfThoseThatWriteThem) {
  EXPECT_EQ(has_text(GetParam()), task_.text.has_value());
}

class FamilyTexts : public Families {};

/// 50 tokens, each the likeliest, with caches.
TEST_P(FamilyTexts, AreTheSame) {
  const Tokens text = tokens("text");
  std::vector<Tokens> from;
  ModelConfig model = theirs_.config();
  model.context = std::ssize(text);
  if (file_.find("text.source") != nullptr) {
    from = {tokens("text.source")};
    model.source_context = std::ssize(from[0]);
  }
  complete(model);
  const TextWriting writing = *task_of(model).text;
  for (const std::int64_t tp : {1, 2}) {
    SCOPED_TRACE(tp);
    const Strategy whole =
        strategy_of(parallel_of(1, tp, 1, false, 0, 1), BatchSplit::Whole, model);
    const auto rank = [&](Communicator* world) {
      const auto device = make_cpu_device({1, -1});
      CompileOptions options;
      options.rank = world == nullptr ? 0 : world->rank();
      std::vector<ProgramSource> sources = writing_programs(writing, 1, whole);
      sources.push_back(
          {kInitProgram, initialise(train_step(task_of(model), golden_recipe(), 1)), whole});
      RankGroup group(compile(std::move(sources), *device, options), *device, world);
      if (options.rank > 0) return group.follow();
      group.run(kInitProgram);
      EXPECT_EQ(group.load_weights(theirs_), "");
      TextModel written(group, writing);
      written.begin(from);
      Tokens found(text.begin(), text.end() - 50);
      while (found.size() < text.size()) {
        const std::vector<double> logits = written.next(std::span(&found, 1))[0];
        found.push_back(
            static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
      }
      EXPECT_EQ(found, text);
      group.stop();
    };
    if (tp == 1) rank(nullptr);
    if (tp > 1) run_ranks(tp, [&](Communicator& world) { rank(&world); });
  }
}

/// A folder of Megatron-LM becomes one of transformers, of the same model, or its form is refused.
void Families::is_written_as_another(const ParameterReader& reader, const TestFolder& scratch) {
  const std::string refusal = message_of([&] {
    save_pretrained(scratch / "out", theirs_.config(), reader, {.config = theirs_.json()});
  });
  if (theirs_.config().activation == "gelu_new") {
    EXPECT_NE(refusal.find("activation is gelu_new"), std::string::npos) << refusal;
    return;
  }
  if (model_.family.name() == "gpt2" && model_.groups() != model_.heads) {
    EXPECT_NE(refusal.find("kv-heads"), std::string::npos) << refusal;
    return;
  }
  ASSERT_EQ(refusal, "");
  const PretrainedModel again = PretrainedModel::open(scratch / "out");
  ModelConfig written = again.config();
  // Of heads that the folder has not, which Megatron-LM's say nothing of.
  if (!reads_field(written, "classifier-dropout"))
    written.classifier_dropout = theirs_.config().classifier_dropout;
  EXPECT_EQ(written, theirs_.config());
  EXPECT_TRUE(again.notices().empty()) << join(again.notices());
  for (const auto& [name, shape] : theirs_.parameters())
    EXPECT_EQ(difference(whole_parameter(again, name), whole_parameter(theirs_, name)), 0) << name;
}

/// A model that came from no folder: every tensor and every key that it is written with is one that
/// transformers writes, with the same value.
TEST_P(Families, IsWrittenAsTransformersWritesIt) {
  const ParameterReader reader{[&](std::string_view name) -> const Shape* {
                                 const auto found = theirs_.parameters().find(name);
                                 return found == theirs_.parameters().end() ? nullptr
                                                                            : &found->second;
                               },
                               [&](std::string_view name, std::span<float> out) {
                                 read_whole(theirs_, name, std::as_writable_bytes(out));
                               }};
  const TestFolder scratch;
  const HubConfig keys_of_folder(read_file(folder() + "/config.json"), "theirs");
  if (hub_family_of(keys_of_folder).only_read) return is_written_as_another(reader, scratch);
  save_pretrained(scratch / "out", theirs_.config(), reader, {.labels = theirs_.labels()});
  const SafetensorsFile found(scratch / "out/model.safetensors"),
      wanted(folder() + "/model.safetensors");
  ASSERT_EQ(found.tensors().size(), wanted.tensors().size());
  for (const StoredTensor& stored : wanted.tensors()) {
    ASSERT_NE(found.find(stored.name), nullptr) << stored.name;
    EXPECT_TRUE(
        std::ranges::equal(found.load(stored.name).bytes(), wanted.load(stored.name).bytes()))
        << stored.name;
  }
  const HubConfig keys(read_file(scratch / "out/config.json"), "out"),
      theirs(read_file(folder() + "/config.json"), "theirs");
  for (const auto& [key, value] : keys.json().items()) {
    // Version 5 of transformers writes that T5's head is tied, whatever it is; version 4 reads it.
    const bool is_of_4 = key == "tie_word_embeddings" && !theirs_.config().tied_head;
    if (theirs.json().contains(key) && !is_of_4) {
      EXPECT_EQ(nlohmann::json(value), nlohmann::json(theirs.json()[key])) << key;
    }
  }
  const PretrainedModel again = PretrainedModel::open(scratch / "out");
  EXPECT_EQ(again.config(), theirs_.config());
  EXPECT_TRUE(again.notices().empty()) << join(again.notices());
}

INSTANTIATE_TEST_SUITE_P(Hub, Families, testing::ValuesIn(family_folders()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Hub, FamilyTexts, testing::ValuesIn(folders_with_texts()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera
