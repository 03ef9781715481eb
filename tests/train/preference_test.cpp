/// Learning from preferences (DPO) beside what PyTorch computes of the same weights: losses, rewards
/// and gradients of five steps, of whole models and of adapters, on one device and on meshes.
/// tools/golden/preferences.py makes tests/golden/preferences.safetensors.

#include "tessera/models/preference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/data/preference_pairs.h"
#include "tessera/files/safetensors.h"
#include "tessera/models/adapters.h"
#include "tessera/pretrained/pretrained_model.h"
#include "train/chat_tokenizer.h"
#include "train/golden_run.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

constexpr const char* kInputs[] = {kChosenIds, kChosenLabels, kRejectedIds, kRejectedLabels};

struct PreferenceCase {
  const char *name, *folder;  // of the golden file; of the weights
  double beta, smoothing;
};

std::ostream& operator<<(std::ostream& out, const PreferenceCase& c) { return out << c.name; }

class Preferences : public testing::TestWithParam<PreferenceCase> {
 protected:
  Preferences() {
    model_.task = kPreference;
    model_.context = stored("steps.chosen_ids").shape()[2];
    model_.preference = {GetParam().beta, GetParam().smoothing};
    complete(model_);
    train_adapters(model_, recipe_);
    graph_ = train_step(task_of(model_), recipe_, stored("steps.chosen_ids").shape()[1]);
  }

  HostTensor stored(const std::string& name) const {
    return file_.load(text(GetParam().name, ".", name));
  }

  Bindings begin(const Graph& graph) const {
    Bindings in;
    for (const State& state : graph.states()) {
      HostTensor value(graph.type(state.value));
      if (state.role == Role::Parameter || state.role == Role::Reference)
        read_whole(weights_, parameter_path(state), value.bytes());
      in.states.emplace(state.path, std::move(value));
    }
    return in;
  }

  void fill(Bindings& in, std::int64_t step) const {
    for (const char* const name : kInputs) {
      const HostTensor all = stored(text("steps.", name));
      HostTensor one(all.dtype(), {all.shape()[1], all.shape()[2]});
      for (std::int64_t i = 0; i < one.numel(); ++i) one.set(i, all.at(step * one.numel() + i));
      in.batch[name] = one;
    }
  }

  SafetensorsFile file_{repo_file("tests/golden/preferences.safetensors")};
  PretrainedModel weights_ =
      PretrainedModel::open(repo_file(text("tests/golden/", GetParam().folder)));
  ModelConfig model_ = weights_.config();
  OptimizerConfig recipe_ = golden_recipe();
  Graph graph_;
};

TEST_P(Preferences, FiveSteps) {
  const HostTensor losses = stored("losses"), norms = stored("grad_norms"),
                   chosen = stored("chosen"), rejected = stored("rejected"),
                   right = stored("accuracies");
  for (const GoldenMesh& mesh : kGoldenMeshes) {
    SCOPED_TRACE(mesh.name);
    Bindings in = begin(graph_);
    const GoldenRun run(graph_, mesh, model_);
    for (std::int64_t step = 0; step < losses.numel(); ++step) {
      SCOPED_TRACE(step);
      fill(in, step);
      const std::map<std::string, HostTensor> out = run(in);
      const auto metric = [&](const char* name) { return out.at(name).at(0); };
      EXPECT_NEAR(metric("loss"), losses.at(step), 1e-6);
      EXPECT_NEAR(metric("grad_norm"), norms.at(step), 1e-5 * norms.at(step));
      EXPECT_NEAR(metric("rewards/chosen"), chosen.at(step), 1e-6);
      EXPECT_NEAR(metric("rewards/rejected"), rejected.at(step), 1e-6);
      EXPECT_NEAR(metric("rewards/margins"), chosen.at(step) - rejected.at(step), 1e-6);
      EXPECT_NEAR(metric("rewards/accuracies"), right.at(step), 1e-6);
    }
  }
}

/// The reference is what training began with: adapters have none of their own, other models a state
/// beside each parameter, which no step changes.
TEST_P(Preferences, NothingUpdatesTheReference) {
  std::int64_t references = 0, parameters = 0;
  for (const State& state : graph_.states()) {
    references += state.role == Role::Reference;
    parameters += state.role == Role::Parameter;
    if (state.role == Role::Reference) {
      EXPECT_FALSE(graph_.output(Output::Kind::Next, state.path).valid()) << state.path;
    }
  }
  EXPECT_EQ(references, model_.lora.rank > 0 ? 0 : parameters);
}

INSTANTIATE_TEST_SUITE_P(Golden, Preferences,
                         testing::Values(PreferenceCase{"gpt2", "hub/gpt2", 0.1, 0},
                                         PreferenceCase{"llama", "hub/llama", 0.5, 0.1},
                                         PreferenceCase{"adapters/gpt2", "adapters/gpt2", 0.1, 0},
                                         PreferenceCase{"adapters/llama", "adapters/llama", 0.3,
                                                        0.2}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

constexpr const char* kTiny[] = {"gpt2-tiny", "llama-tiny"};

class PreferenceRun : public TrainerTest {
 protected:
  PreferenceRun() {
    chat_tokenizer_in(folder_);
    std::ofstream texts(folder_ + "/texts.jsonl"), lists(folder_ + "/lists.jsonl");
    for (int i = 0; i < 24; ++i) {
      const std::string question = text("what is ", i, "?"), right = std::to_string(i),
                        wrong = text("no ", i * 7919 % 100);
      texts << nlohmann::json{{"prompt", question}, {"chosen", right}, {"rejected", wrong}}.dump()
            << '\n';
      const auto with = [&](const std::string& answer) {
        return nlohmann::json{{{"role", "user"}, {"content", question}},
                              {{"role", "assistant"}, {"content", answer}}};
      };
      lists << nlohmann::json{{"chosen", with(right)}, {"rejected", with(wrong)}}.dump() << '\n';
    }
  }

  RunConfig on_pairs(const std::string& output, const char* preset = "llama-tiny",
                     const char* data = "texts") const {
    RunConfig out = config(output);
    find_preset(preset).apply(out);
    out.model.task = kPreference;
    out.model.layers = 2;
    out.model.width = 32;
    out.model.dropout = 0;
    out.model.context = 96;
    out.model.vocabulary = 0;
    out.vocabulary = VocabularyKind::Tokenizer;
    out.tokenizer = folder_ + "/tokenizer";
    out.data = {folder_ + "/" + data + ".jsonl"};
    out.held_out = 0.2;
    out.global_batch_size = 4;
    out.steps = 6;
    out.log_every = 1;
    return out;
  }

  std::vector<nlohmann::json> lines(const std::string& output, const std::string& kind) const {
    std::istringstream in(file(output + "/metrics.jsonl"));
    std::vector<nlohmann::json> out;
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.at("kind") == kind) out.push_back(json);
    }
    return out;
  }
};

/// Before the first update no answer has a reward, to the bit: the reference computes what the model
/// does, with its copies of the weights or without adapters, in whatever floats.
TEST_F(PreferenceRun, BeginsAtLn2) {
  for (const char* const preset : kTiny) {
    for (const bool bf16 : {false, true}) {
      for (const std::int64_t rank : {0, 4}) {
        SCOPED_TRACE(text(preset, bf16 ? " bf16" : " f32", " lora-rank ", rank));
        const std::string output = text(preset, bf16, rank);
        RunConfig config = on_pairs(output, preset, rank == 0 ? "texts" : "lists");
        config.bf16 = bf16;
        config.model.lora.rank = rank;
        run(config);
        const std::vector<nlohmann::json> steps = lines(output, "train");
        ASSERT_EQ(steps.size(), 6u);
        EXPECT_NEAR(steps[0].at("loss"), std::log(2.0), 1e-7);
        for (const char* const name : {"chosen", "rejected", "margins", "accuracies"})
          EXPECT_EQ(steps[0].at(text("rewards/", name)), 0) << name;
        EXPECT_LT(steps[5].at("loss"), std::log(2.0));
        const nlohmann::json eval = lines(output, "valid").back();
        EXPECT_GT(eval.at("rewards/margins"), 0);
      }
    }
  }
}

TEST_F(PreferenceRun, AResumedRunEndsWithTheSameBits) {
  RunConfig whole = on_pairs("whole"), cut = on_pairs("cut");
  whole.save_every = cut.save_every = 1;
  run(whole);
  for (const std::int64_t step : {2, 4}) {
    StopAfter stop(step);
    run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  }
  run(cut);
  EXPECT_EQ(digest_of("cut"), digest_of("whole"));
  const auto at = [&](const char* output) { return lines(output, "train").back().at("loss"); };
  EXPECT_EQ(at("cut"), at("whole"));
}

/// The reference of a run is what the run began with, though that was trained on preferences.
TEST_F(PreferenceRun, BeginsWithTheModelOfAnotherRun) {
  run(on_pairs("first"));
  RunConfig second = on_pairs("second");
  second.init_from = folder_ + "/first";
  run(second);
  const nlohmann::json step = lines("second", "train").front();
  EXPECT_NEAR(step.at("loss"), std::log(2.0), 1e-7);
  EXPECT_EQ(step.at("rewards/chosen"), 0);
}

TEST_F(PreferenceRun, MeshesLearnTheSame) {
  struct Case {
    const char* name;
    ParallelConfig parallel;
    std::int64_t zero_stage, lora_rank, micro_batch;
  };
  for (const std::int64_t rank : {0, 4}) {
    const std::string one = text("one", rank);
    RunConfig alone = on_pairs(one);
    alone.model.lora.rank = rank;
    run(alone);
    for (const Case& c : {Case{"dp2-zero1", {.devices = 2}, 1, rank, 0},
                          Case{"dp2-zero3", {.devices = 2}, 3, rank, 1},
                          Case{"tp2-sp", {.devices = 2, .tensor = 2, .sequence = true}, 0, rank, 0},
                          Case{"pp2", {.devices = 4, .pipeline = 2}, 1, rank, 1},
                          Case{"cp2", {.devices = 2, .context = 2}, 0, rank, 0}}) {
      SCOPED_TRACE(text(c.name, " lora-rank ", rank));
      const std::string output = text(c.name, rank);
      RunConfig mesh = on_pairs(output);
      mesh.model.lora.rank = rank;
      mesh.parallel = c.parallel;
      mesh.zero_stage = c.zero_stage;
      mesh.micro_batch_size = c.micro_batch;
      run_on_ranks(mesh);
      for (const char* const kind : {"valid", "train"}) {
        const nlohmann::json there = lines(one, kind).back(), here = lines(output, kind).back();
        EXPECT_NEAR(here.at("loss"), there.at("loss"), 1e-5) << kind;
        EXPECT_NEAR(here.at("rewards/margins"), there.at("rewards/margins"), 1e-5) << kind;
      }
    }
  }
}

TEST_F(PreferenceRun, TheContextIsThatOfTheLongestPair) {
  RunConfig config = on_pairs("open");
  config.defaulted.insert("context");
  Problems problems;
  const std::optional<PreparedRun> run = prepare_run(config, problems);
  problems.raise();
  EXPECT_LT(run->config.model.context, 96);
  EXPECT_EQ(run->config.model.context % 8, 0);
  EXPECT_EQ(run->task.tokens, 2 * run->config.model.context);
}

TEST_F(PreferenceRun, RefusesWithFileAndLine) {
  const auto refused = [&](auto change) {
    RunConfig config = on_pairs("refused");
    change(config);
    return refusal(config);
  };
  const auto says = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), message.npos) << message;
  };
  says(refused([](RunConfig& c) { c.model.context = 12; }),
       "texts.jsonl' line 2: the prompt with the answer in \"rejected\" has 14 tokens");
  says(refused([](RunConfig& c) { c.packing = "none"; }), "packing none does nothing with family ");
  says(refused([](RunConfig& c) { c.model.preference.beta = 0; }), "dpo-beta is 0");
  says(refused([](RunConfig& c) {
         c.vocabulary = VocabularyKind::Bytes;
         c.tokenizer = "";
       }),
       "preferences are written in the tokens of a tokenizer");
  std::ofstream(folder_ + "/texts.jsonl", std::ios::app)
      << "{\"prompt\": \"a\", \"chosen\": \"b\"}\n";
  says(refused([](RunConfig&) {}), "texts.jsonl' line 25: there is no key \"rejected\"");
  std::filesystem::remove(folder_ + "/tokenizer/chat_template.jinja");
  says(refused([&](RunConfig& c) { c.data = {folder_ + "/lists.jsonl"}; }),
       "lists.jsonl' line 1: the tokenizer has no chat template");
}

}  // namespace
}  // namespace tessera
