/// Runs on dialogues: what is learned of them, packed or alone, on one device or several.

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "train/chat_tokenizer.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

class DialogueRun : public TrainerTest {
 protected:
  DialogueRun() {
    chat_tokenizer_in(folder_);
    std::ofstream rows(folder_ + "/chat.jsonl"), pairs(folder_ + "/pairs.jsonl");
    for (int i = 0; i < 40; ++i) {
      nlohmann::json messages = nlohmann::json::array();
      for (int k = 0; k <= i % 3; ++k) {
        messages.push_back({{"role", "user"}, {"content", std::to_string(i * 7919 % 1000)}});
        messages.push_back({{"role", "assistant"}, {"content", std::to_string(i * 31 + k)}});
      }
      rows << nlohmann::json{{"messages", messages}}.dump() << '\n';
      pairs << nlohmann::json{{"prompt", messages[0]["content"]},
                              {"completion", messages[1]["content"]}}
                   .dump()
            << '\n';
    }
  }

  RunConfig on_dialogues(const std::string& output, const char* preset = "llama-tiny") const {
    RunConfig out = config(output);
    find_preset(preset).apply(out);
    out.model.layers = 1;
    out.model.width = 32;
    out.model.dropout = 0;
    out.model.context = 160;
    out.model.vocabulary = 0;
    out.vocabulary = VocabularyKind::Tokenizer;
    out.tokenizer = folder_ + "/tokenizer";
    out.data = {folder_ + "/chat.jsonl"};
    out.defaulted = {"packing", "text-column"};
    out.global_batch_size = 4;
    out.steps = 6;
    return out;
  }

  static PreparedRun prepared(const RunConfig& config) {
    Problems problems;
    std::optional<PreparedRun> out = prepare_run(config, problems);
    problems.raise();
    return std::move(*out);
  }

  std::vector<double> train_losses(const std::string& output) const {
    std::istringstream lines(file(output + "/metrics.jsonl"));
    std::vector<double> out;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.at("kind") == "train") out.push_back(json.at("loss"));
    }
    return out;
  }

  std::vector<double> losses_on(std::int64_t devices) {
    const std::string output = text("on", devices);
    RunConfig config = on_dialogues(output);
    config.log_every = 1;
    config.parallel.devices = devices;
    run_on_ranks(config);
    return train_losses(output);
  }
};

/// The loss summed over all samples that train, and of how many tokens.
struct EpochLoss {
  double sum = 0, count = 0;
  std::int64_t samples = 0;
};

EpochLoss loss_of_epoch(const PreparedRun& run, Device& device) {
  RankGroup group(
      compile_programs(RunSetup(run.config), {.train = true, .evaluate = true, .texts = 0}, device)
          .plan,
      device);
  group.run(kInitProgram);
  const auto samples = run.task.train_samples(*run.data, sample_choices(run.config));
  EpochLoss out;
  out.samples = samples->size();
  for (std::int64_t i = 0; i < out.samples; ++i) {
    group.run(kEvaluateProgram, [&](BatchInputs& inputs) { samples->fill(i, 1, inputs); });
    out.sum += group.engine().scalar(kEvaluateProgram, sum_metric(run.task.means[0]));
    out.count += group.engine().scalar(kEvaluateProgram, count_metric(run.task.means[0]));
  }
  return out;
}

/// Packed dialogues lose what they lose alone: answers count by their tokens.
TEST_F(DialogueRun, PackedOnesLoseWhatTheyLoseAlone) {
  for (const char* const preset : {"gpt2-tiny", "llama-tiny"}) {
    SCOPED_TRACE(preset);
    RunConfig packed = on_dialogues("packed", preset), alone = on_dialogues("alone", preset);
    alone.packing = "none";
    alone.defaulted.erase("packing");
    packed.global_batch_size = alone.global_batch_size = 1;
    const PreparedRun several = prepared(packed), one = prepared(alone);
    EXPECT_EQ(several.config.packing, "bfd");
    const EpochLoss together = loss_of_epoch(several, *device_),
                    apart = loss_of_epoch(one, *device_);
    EXPECT_LT(together.samples, apart.samples);
    EXPECT_EQ(together.count, apart.count);
    EXPECT_NEAR(together.sum, apart.sum, 1e-5 * apart.sum) << "sums of f32 in another order";

    RunConfig all = packed;
    all.chat_loss = "all";
    all.output += "all";
    EXPECT_GT(loss_of_epoch(prepared(all), *device_).count, 2 * together.count);
  }
}

TEST_F(DialogueRun, SeveralDevicesHaveTheLossesOfOne) {
  const std::vector<double> one = losses_on(1);
  ASSERT_EQ(one.size(), 6u);
  for (const std::int64_t devices : {2, 4}) {
    const std::vector<double> losses = losses_on(devices);
    ASSERT_EQ(losses.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(losses[i], one[i], 1e-5 * one[i]) << devices << " devices, step " << i;
  }
}

TEST_F(DialogueRun, FindsTheFormOfItsData) {
  const PreparedRun dialogues = prepared(on_dialogues("dialogues"));
  EXPECT_EQ(dialogues.config.text_column, "messages");
  EXPECT_FALSE(dialogues.data->texts().counts.empty());
  RunConfig pairs = on_dialogues("pairs");
  pairs.data = {folder_ + "/pairs.jsonl"};
  const PreparedRun of_pairs = prepared(pairs);
  EXPECT_EQ(of_pairs.config.text_column, "prompt");
  EXPECT_EQ(of_pairs.config.target_column, "completion");
  EXPECT_FALSE(of_pairs.data->texts().counts.empty());
}

TEST_F(DialogueRun, RefusesWithFileAndLine) {
  RunConfig config = on_dialogues("refused");
  config.model.context = 32;
  EXPECT_NE(refusal(config).find("chat.jsonl' line 2: the dialogue has "), std::string::npos)
      << refusal(config);
  config.long_dialogues = "cut";
  const PreparedRun cut = prepared(config);
  EXPECT_NE(join(cut.notices, "\n").find("dialogues are longer than the context and cut"),
            std::string::npos);

  RunConfig wrapped = on_dialogues("refused");
  wrapped.packing = "wrapped";
  wrapped.defaulted.erase("packing");
  EXPECT_NE(refusal(wrapped).find("packing wrapped would cut dialogues; give bfd or none"),
            std::string::npos);

  std::ofstream(folder_ + "/chat.jsonl", std::ios::app)
      << R"({"messages": [{"role": "user", "content": "a"}]})" << '\n';
  EXPECT_NE(refusal(on_dialogues("refused")).find("chat.jsonl' line 41: no message of the "),
            std::string::npos);

  std::filesystem::remove(folder_ + "/tokenizer/chat_template.jinja");
  EXPECT_NE(refusal(on_dialogues("refused")).find("the tokenizer has no chat template"),
            std::string::npos);

  RunConfig characters = on_dialogues("refused");
  characters.vocabulary = VocabularyKind::Characters;
  characters.tokenizer = "";
  EXPECT_NE(refusal(characters).find("dialogues are written with the chat template"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
