/// Runs that train T5 on token files of sentences, with Megatron-LM's samples.

#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "train/sentence_run.h"

namespace tessera {
namespace {

class T5Run : public SentenceRun {
 protected:
  T5Run() : SentenceRun(1) {}
  RunConfig t5(const std::string& output) const {
    RunConfig out = config(output);
    out.model = published("t5");
    out.model.layers = 2, out.model.heads = 4, out.model.width = 32;
    out.model.source_context = 32, out.model.context = 10;
    train_on_sentences(out);
    out.vocab_extra_ids = 8;
    out.eval_every = 4;
    return out;
  }
};

TEST_F(T5Run, EveryMeshHasTheSameLosses) {
  const RunConfig one = t5("one");
  run(one);
  const struct {
    const char* name;
    int devices, tensor, pipeline;
    bool zero2;
  } cases[] = {
      {"dp2", 2, 1, 1, true},    {"tp2", 2, 2, 1, false},    {"pp2", 2, 1, 2, false},
      {"dp2tp2", 4, 2, 1, true}, {"dp2pp2", 4, 1, 2, false}, {"tp2pp2", 4, 2, 2, false},
  };
  for (const auto& c : cases) {
    RunConfig mesh = t5(c.name);
    mesh.parallel.devices = c.devices;
    mesh.parallel.tensor = c.tensor;
    mesh.parallel.pipeline = c.pipeline;
    mesh.zero2 = c.zero2;
    mesh.micro_batch_size = 2;
    run_on_ranks(mesh);
    for (const std::string kind : {"train", "valid"}) {
      const double a = last("one", kind).at("loss"), b = last(c.name, kind).at("loss");
      EXPECT_NEAR(b, a, 1e-5 * a) << c.name << " " << kind;
    }
  }
}

TEST_F(T5Run, GoesOnWithTheSameBits) {
  RunConfig whole = t5("whole"), parts = t5("parts");
  whole.model.dropout = parts.model.dropout = 0.1;
  run(whole);
  parts.exit_interval = 5;
  run(parts);
  // From what the checkpoint has of the tokenizer.
  std::filesystem::remove(parts.vocab_file);
  parts.exit_interval = 0;
  run(parts);
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(digest_of("parts/checkpoints/step-00000012"),
            digest_of("whole/checkpoints/step-00000012"));
}

TEST_F(T5Run, TakesItsTokensFromTheTokenizer) {
  Problems problems;
  const auto prepared = prepare_run(t5("tokens"), problems);
  problems.raise();
  // [PAD], [CLS] and [SEP]; the vocabulary is that of the file and the sentinels.
  EXPECT_EQ(prepared->config.model.special_tokens, "0,2,3");
  EXPECT_EQ(prepared->config.model.vocabulary, 48);
  EXPECT_EQ(prepared->data->vocabulary.made_elsewhere()->id_of("<extra_id_0>"), 40);
}

TEST_F(T5Run, AsksForWhatItNeeds) {
  const auto says = [&](const auto& change) {
    RunConfig config = t5("none");
    change(config);
    return refusal(config);
  };
  const struct {
    const char* says;
    std::string problem;
  } cases[] = {
      {"and the run's has none", says([](RunConfig& c) { c.vocab_extra_ids = 0; })},
      {"to write, but context is 5", says([](RunConfig& c) { c.model.context = 5; })},
      {"bucket-lengths 8,10 does nothing here", says([](RunConfig& c) {
         c.model.source_context = 10;
         c.bucket_lengths = "8,10";
       })},
      {"names a token before every text",
       says([](RunConfig& c) { c.model.special_tokens = "0,2,3,1"; })},
      {"does nothing without a tokenizer-type", says([](RunConfig& c) {
         c.tokenizer_type = "auto";
         c.tokenizer = c.vocab_file;
         c.vocab_file = "";
       })},
      {"tokenizer-type HuggingFaceTokenizer has none", says([](RunConfig& c) {
         c.tokenizer_type = "HuggingFaceTokenizer";
         c.tokenizer = c.vocab_file;
         c.vocab_file = "";
       })},
      {"family bart trains on texts, but data", says([](RunConfig& c) {
         c.model.family = "bart";
         c.model.source_context = c.model.context;
       })},
  };
  for (const auto& c : cases)
    EXPECT_NE(c.problem.find(c.says), std::string::npos) << c.says << "\n" << c.problem;
}

}  // namespace
}  // namespace tessera
