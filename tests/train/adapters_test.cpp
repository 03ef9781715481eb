/// Adapters (LoRA) of tiny models, read from PEFT's folders, against what PEFT computes: logits,
/// loss, five steps of AdamW in which they alone are trained; and written as PEFT has them.
/// tools/golden/adapters.py makes tests/golden/adapters; a folder there is a case.

#include "tessera/models/adapters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/ops/softmax.h"
#include "tessera/pretrained/hub/hub_adapter.h"
#include "tessera/pretrained/merge_adapters.h"
#include "tessera/pretrained/pretrained_model.h"
#include "train/golden_run.h"

namespace tessera {
namespace {

std::vector<std::string> adapter_folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(repo_file("tests/golden/adapters")))
    out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

ParameterReader peft_reader(const PretrainedModel& model) {
  return {[&](std::string_view name) {
            const auto found = model.parameters().find(name);
            return found == model.parameters().end() ? nullptr : &found->second;
          },
          [&](std::string_view name, std::span<float> out) {
            read_whole(model, name, std::as_writable_bytes(out));
          }};
}

class PeftAdapters : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return repo_file("tests/golden/adapters/" + GetParam()); }

  Bindings begin(const Graph& graph, const ParameterReader& from) const {
    Bindings in;
    for (const State& state : graph.states()) {
      HostTensor value(graph.type(state.value));
      if (is_of_model(state.role))
        from.read(state.path, {value.data<float>(), static_cast<std::size_t>(value.numel())});
      in.states.emplace(state.path, std::move(value));
    }
    return in;
  }

  std::vector<std::string> inputs() const {
    std::vector<std::string> out;
    for (const StoredTensor& stored : file_.tensors())
      if (stored.name.starts_with("in.")) out.push_back(stored.name.substr(3));
    return out;
  }

  HostTensor of_step(const std::string& name, std::int64_t step) const {
    const HostTensor all = file_.load("steps." + name);
    Shape shape = all.shape();
    shape.erase(0);
    HostTensor out(all.dtype(), shape);
    for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, all.at(step * out.numel() + i));
    return out;
  }

  ModelConfig sampled(ModelConfig model) const {
    const Shape ids = file_.load("in.ids").shape();
    model.context = ids[ids.ndim() - 1];
    if (ids.ndim() == 3) model.texts = ids[1];
    if (file_.find("in.source") != nullptr)
      model.source_context = file_.load("in.source").shape()[1];
    complete(model);
    return model;
  }

  /// The loss of a model on the first batch, on one device in f64.
  double loss(const ModelConfig& model, const ParameterReader& from) const {
    Builder builder;
    TaskValues values;
    for (const std::string& name : inputs()) {
      const HostTensor given = file_.load("in." + name);
      values.emplace(name, builder.batch(name, {given.dtype(), given.shape(), {}}));
    }
    const Task task = task_of(model);
    const Measured measured = task.measure(values, {});
    builder.output(Output::Kind::Metric, "loss", loss_of(task, measured.means));
    const Graph graph = builder.finish();
    Bindings in = begin(graph, from);
    for (const std::string& name : inputs()) in.batch[name] = file_.load("in." + name);
    Interpretation how;
    how.f64 = true;
    return interpret(graph, in, how)[0].at(0);
  }

  SafetensorsFile file_{folder() + "/golden.safetensors"};
  PretrainedModel theirs_ = PretrainedModel::open(folder());
  ModelConfig model_ = sampled(theirs_.config());
};

TEST_P(PeftAdapters, FiveSteps) {
  EXPECT_TRUE(theirs_.notices().empty()) << join(theirs_.notices());
  OptimizerConfig recipe = golden_recipe();
  train_adapters(model_, recipe);
  const std::int64_t batch = file_.load("in.ids").shape()[0];
  const Graph graph = train_step(task_of(model_), recipe, batch);
  for (const State& state : graph.states()) {
    if (state.role != Role::Moment) continue;
    EXPECT_TRUE(state.path.find(".lora_") != state.path.npos ||
                state.path.starts_with("classifier.") || state.path.starts_with("score."))
        << state.path;
  }
  const HostTensor losses = file_.load("losses"), norms = file_.load("grad_norms");
  for (const GoldenMesh& mesh : kGoldenMeshes) {
    SCOPED_TRACE(mesh.name);
    Bindings in = begin(graph, peft_reader(theirs_));
    const GoldenRun run(graph, mesh, model_);
    for (std::int64_t step = 0; step < losses.numel(); ++step) {
      for (const std::string& name : inputs()) in.batch[name] = of_step(name, step);
      const std::map<std::string, HostTensor> out = run(in);
      EXPECT_NEAR(out.at("loss").at(0), losses.at(step), 1e-6) << "step " << step;
      EXPECT_NEAR(out.at("grad_norm").at(0), norms.at(step), 1e-5) << "step " << step;
    }
  }
}

/// As one weight it is the same model, and without the adapter it is another.
TEST_P(PeftAdapters, MergedTheyAreTheSameModel) {
  const double right = file_.load("loss").at(0);
  EXPECT_NEAR(loss(model_, peft_reader(theirs_)), right, 1e-6);
  ModelConfig whole = model_;
  whole.lora = {};
  EXPECT_NEAR(loss(whole, merged(theirs_.config(), peft_reader(theirs_))), right, 1e-5);
  EXPECT_GT(std::abs(loss(whole, peft_reader(theirs_)) - right), 1e-3);
  // A folder of the whole model has it too.
  const ParameterReader with = merged(theirs_.config(), peft_reader(theirs_));
  const auto tensors = pretrained_tensors(theirs_.config(), peft_reader(theirs_)),
             right_ones = pretrained_tensors(without_adapters(theirs_.config()), with);
  ASSERT_EQ(tensors.size(), right_ones.size());
  for (const auto& [name, tensor] : tensors)
    EXPECT_EQ(difference(tensor, right_ones.at(name)), 0) << name;
}

TEST_P(PeftAdapters, AreWrittenAsTheyWere) {
  const TestFolder scratch;
  save_adapter(scratch.path() + "/written", theirs_.config(), peft_reader(theirs_), theirs_.base());
  const SafetensorsFile was(folder() + "/" + kHubAdapterWeights),
      is(scratch.path() + "/written/" + kHubAdapterWeights);
  ASSERT_EQ(is.tensors().size(), was.tensors().size());
  for (const StoredTensor& tensor : was.tensors()) {
    ASSERT_NE(is.find(tensor.name), nullptr) << tensor.name;
    const bool sum = tensor.name.ends_with("lora_magnitude_vector");  // of what rows had and gained
    EXPECT_LE(difference(is.load(tensor.name), was.load(tensor.name)), sum ? 1e-6 : 0)
        << tensor.name;
  }
  const PretrainedModel again = PretrainedModel::open(scratch.path() + "/written");
  EXPECT_EQ(again.config(), theirs_.config());
}

INSTANTIATE_TEST_SUITE_P(Hub, PeftAdapters, testing::ValuesIn(adapter_folders()),
                         [](const auto& info) { return info.param; });

/// What is wrong with a copy of the adapter of llama whose adapter_config.json says `to` in place of
/// `from`, and whose tensors `change` has changed.
std::string opening_fails(
    const std::string& from, const std::string& to,
    const std::function<void(std::map<std::string, HostTensor>& tensors)>& change = {}) {
  const TestFolder scratch;
  const std::string golden = repo_file("tests/golden/adapters/llama");
  std::string config = read_file(golden + "/" + kHubAdapterConfig, Fault::Data);
  const std::string base = "../../hub/llama";
  config.replace(config.find(base), base.size(), repo_file("tests/golden/hub/llama"));
  if (!from.empty()) {
    EXPECT_NE(config.find(from), config.npos) << from;
    config.replace(config.find(from), from.size(), to);
  }
  write_atomically(scratch / kHubAdapterConfig, config);
  const SafetensorsFile weights(golden + "/" + kHubAdapterWeights);
  std::map<std::string, HostTensor> tensors;
  for (const StoredTensor& stored : weights.tensors())
    tensors.emplace(stored.name, weights.load(stored.name));
  if (change) change(tensors);
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back(TensorSource::of(name, tensor.type(), tensor.bytes()));
  write_safetensors(scratch / kHubAdapterWeights, std::move(sources), {{"format", "pt"}});
  try {
    PretrainedModel::open(scratch.path());
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PeftAdapter, WhatWouldComputeOtherwiseIsRefused) {
  EXPECT_EQ(opening_fails("", ""), "");
  for (const auto& [from, to, said] :
       {std::tuple{"\"use_dora\": false", "\"use_dora\": true", "lora_magnitude_vector"},
        {"\"bias\": \"none\"", "\"bias\": \"all\"", "bias is \"all\""},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"q_proj\": 8}", "rank_pattern is "},
        {"\"layers_to_transform\": null", "\"layers_to_transform\": [0]",
         "layers_to_transform is "},
        {"\"peft_type\": \"LORA\"", "\"peft_type\": \"LOHA\"", "peft_type is \"LOHA\""},
        {"\"r\": 3", "\"r\": 4", "of this model it is [4,"},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa\"",
         "init_lora_weights is \"pissa\""},
        {"\"revision\": null", "\"revision\": \"v2\"", "revision is \"v2\""},
        {"hub/llama", "hub/gone", "there is no such folder with a config.json"},
        {"hub/llama", "hub/gpt2", "is of no layer of family gpt2"}}) {
    const std::string message = opening_fails(from, to);
    EXPECT_NE(message.find(said), message.npos) << message;
  }
}

TEST(PeftAdapter, EveryTensorIsReadOrRefused) {
  using Tensors = std::map<std::string, HostTensor>;
  const std::string prefix(kHubAdapterPrefix), q = prefix + "model.layers.0.self_attn.q_proj";
  const auto says = [&](const auto& change, const std::string& said) {
    const std::string message = opening_fails("", "", change);
    EXPECT_NE(message.find(said), message.npos) << message;
  };
  says([&](Tensors& t) { t.erase(q + ".lora_A.weight"); }, "lacks adapters of some layers");
  says([](Tensors& t) { t.clear(); }, "has no adapter");
  says([&](Tensors& t) { t.emplace(prefix + "lm_head.lora_A.weight", t.begin()->second); },
       "is of a layer that has no adapter here");
  says(
      [&](Tensors& t) {
        t.emplace(q + ".weight", HostTensor(DType::F32, {32, 32}));
      },
      "is a part of a weight that is one here");
  says(
      [&](Tensors& t) {
        t.emplace(prefix + "lm_head.weight", HostTensor(DType::F32, {103, 32}));
      },
      "is [103,32]; of this model it is [61,32]");
  says([&](Tensors& t) { t.emplace(prefix + "other.weight", HostTensor(DType::F32, {2})); },
       "is of no layer of family llama");
  EXPECT_EQ(opening_fails("", "",
                          [&](Tensors& t) {
                            t.emplace(prefix + "lm_head.weight", HostTensor(DType::F32, {61, 32}));
                          }),
            "");
}

/// A target that no layer is called.
TEST(PeftAdapter, TargetsAreLayers) {
  ModelConfig model{.family = "gpt2"};
  model.lora = {.rank = 2, .targets = {"gate", "up"}};
  try {
    require_adapter_targets(model);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "no layer of family gpt2 is called gate, which lora-targets has; the "
                 "others are up");
  }
}

}  // namespace
}  // namespace tessera
