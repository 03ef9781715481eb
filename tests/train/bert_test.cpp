/// Runs that train BERT, from text to checkpoint: what the trainer does for a task that is not the
/// next token.

#include <nlohmann/json.hpp>

#include "train/sentence_run.h"

namespace tessera {
namespace {

class BertRun : public SentenceRun {
 protected:
  BertRun() : SentenceRun(2) {}
  RunConfig bert(const std::string& output) const {
    RunConfig out = config(output);
    find_preset("bert-tiny").apply(out);
    out.model.layers = 2;
    out.model.dropout = 0.1;
    out.steps = 12;
    out.eval_every = 4;
    return out;
  }
};

TEST_F(BertRun, AnInterruptedRunIsTheUndisturbedOneBitByBit) {
  for (const std::int64_t masked_positions : {0, 4}) {
    const std::string name = text("whole", masked_positions),
                      of_parts = text("parts", masked_positions);
    RunConfig whole = bert(name);
    whole.model.masked_positions = masked_positions;
    run(whole);
    RunConfig parts = whole;
    parts.output = folder_ + "/" + of_parts;
    parts.exit_interval = 5;
    run(parts);
    // The model is that of the checkpoint, whose vocabulary is the text's and four tokens.
    parts.exit_interval = 0;
    parts.model = {.family = "bert", .vocabulary = 0};
    for (const char* field : {"layers", "heads", "width", "context", "vocab-size", "norm-eps",
                              "dropout", "masked-positions"})
      parts.defaulted.emplace(field);
    EXPECT_EQ(run(parts).ending, Ending::Finished);
    EXPECT_EQ(digest_of(of_parts), digest_of(name));
    EXPECT_EQ(losses(of_parts), losses(name));
  }
}

/// Sentences of token files, with Megatron-LM's samples.
TEST_F(BertRun, OnTokenFilesEveryMeshHasTheSameLosses) {
  for (const std::int64_t masked_positions : {0, 5}) {
    RunConfig one = bert(text("one", masked_positions));
    train_on_sentences(one);
    one.model.masked_positions = masked_positions;
    one.model.dropout = 0;
    run(one);
    RunConfig two = one, four = one, stages = one;
    two.output = folder_ + text("/two", masked_positions);
    two.parallel.devices = 2;
    two.zero2 = true;
    four.output = folder_ + text("/four", masked_positions);
    four.parallel.devices = 4;
    four.parallel.tensor = 2;
    four.micro_batch_size = 2;
    stages.output = folder_ + text("/stages", masked_positions);
    stages.parallel.devices = 4;
    stages.parallel.pipeline = 2;
    stages.micro_batch_size = 2;
    for (const RunConfig* const mesh : {&two, &four, &stages}) {
      run_on_ranks(*mesh);
      const std::string name = mesh->output.substr(folder_.size() + 1);
      for (const std::string kind : {"train", "valid"}) {
        const nlohmann::json a = last(text("one", masked_positions), kind), b = last(name, kind);
        for (const char* part : {"loss", "mlm_loss", "nsp_loss"})
          EXPECT_NEAR(double(b.at(part)), double(a.at(part)), 1e-5 * double(a.at(part)))
              << name << " " << part;
      }
    }
    RunConfig parts = one;  // goes on with the same bits
    parts.output = folder_ + text("/parts", masked_positions);
    parts.exit_interval = 5;
    run(parts);
    parts.exit_interval = 0;
    run(parts);
    EXPECT_EQ(digest_of(text("parts", masked_positions, "/checkpoints/step-00000012")),
              digest_of(text("one", masked_positions, "/checkpoints/step-00000012")));
  }
}

TEST_F(BertRun, TheLossIsTheSumOfItsPartsInTrainingAndValidation) {
  RunConfig one = bert("one");
  one.model.masked_positions = 4;
  run(one);
  RunConfig mesh = one;
  mesh.output = folder_ + "/mesh";
  mesh.parallel.devices = 4;
  mesh.parallel.tensor = 2;
  mesh.micro_batch_size = 2;
  mesh.zero2 = true;
  run_on_ranks(mesh);
  for (const std::string kind : {"train", "valid"}) {
    const nlohmann::json a = last("one", kind), b = last("mesh", kind);
    const double loss = a.at("loss"), sum = double(a.at("mlm_loss")) + double(a.at("nsp_loss"));
    EXPECT_NEAR(loss, sum, 1e-6 * loss) << kind;
    for (const char* name : {"loss", "mlm_loss", "nsp_loss"})
      EXPECT_NEAR(double(b.at(name)), double(a.at(name)), 1e-5 * double(a.at(name))) << name;
    for (const char* name : {"mlm_accuracy", "nsp_accuracy"}) {
      EXPECT_GE(double(a.at(name)), 0) << name;
      EXPECT_LE(double(a.at(name)), 1) << name;
    }
  }
}

/// In so few steps it learns how frequent each token is; what stands around it takes thousands.
TEST_F(BertRun, LearnsHowFrequentTokensAre) {
  RunConfig c = bert("learns");
  c.model.dropout = 0;
  c.optimizer.schedule.lr = 3e-3;
  c.steps = 120;
  c.eval_every = 0;
  run(c);
  std::istringstream lines(file("learns/metrics.jsonl"));
  std::string first;
  std::getline(lines, first);
  const double before = nlohmann::json::parse(first).at("mlm_loss"),
               after = last("learns", "valid").at("mlm_loss");
  EXPECT_LT(after, 0.85 * before);
}

TEST_F(BertRun, OtherMasksAreToldBeforeARunGoesOn) {
  RunConfig c = bert("run");
  c.exit_interval = 3;
  run(c);
  c.model.masked_positions = 4;
  const std::string message = refusal(c);
  EXPECT_NE(message.find("masked-positions is 0 there and 4 here"), std::string::npos) << message;
  c.allow_changes = true;
  EXPECT_EQ(refusal(c), "");
}

TEST_F(BertRun, BeginsWithTheWeightsOfAnother) {
  run(bert("first"));
  RunConfig second = bert("second");
  second.resume = "none";
  second.init_from = folder_ + "/first";
  EXPECT_EQ(run(second).ending, Ending::Finished);
}

}  // namespace
}  // namespace tessera
