/// Runs that pretrain T5 and BART on a text without targets.

#include "tessera/models/denoising.h"

#include "tessera/data/dataset.h"
#include "tessera/token_files/noised_texts.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

class DenoisingRun : public TrainerTest {
 protected:
  RunConfig denoising(const char* family, const std::string& output) const {
    RunConfig out = config(output);
    out.model = published(family);
    out.model.task = "denoising";
    out.model.layers = 2, out.model.heads = 4, out.model.width = 32;
    out.model.source_context = 24;
    out.model.context = out.model.family == "t5" ? 7 : 24;
    out.model.dropout = 0.1;
    out.global_batch_size = out.micro_batch_size = 8;
    out.eval_every = 4;
    out.held_out = 0.1;
    return out;
  }
};

TEST_F(DenoisingRun, EveryMeshHasTheSameLosses) {
  for (const char* family : {"t5", "bart"}) {
    const std::string one = text(family, "-one");
    run(denoising(family, one));
    const struct {
      const char* name;
      int devices, tensor, pipeline;
      bool zero3;
    } cases[] = {{"tp2", 2, 2, 1, false}, {"dp2pp2", 4, 1, 2, false}, {"dp2tp2", 4, 2, 1, true}};
    for (const auto& c : cases) {
      const std::string output = text(family, "-", c.name);
      RunConfig mesh = denoising(family, output);
      mesh.parallel.devices = c.devices;
      mesh.parallel.tensor = c.tensor;
      mesh.parallel.pipeline = c.pipeline;
      if (c.zero3) mesh.zero_stage = 3;
      mesh.micro_batch_size = 2;
      run_on_ranks(mesh);
      for (const std::string kind : {"train", "valid"}) {
        const double a = last(one, kind).at("loss"), b = last(output, kind).at("loss");
        EXPECT_NEAR(b, a, 1e-5 * a) << output << " " << kind;
      }
    }
  }
}

TEST_F(DenoisingRun, GoesOnWithTheSameBits) {
  for (const char* family : {"t5", "bart"}) {
    const std::string whole = text(family, "-whole"), parts = text(family, "-parts");
    run(denoising(family, whole));
    RunConfig config = denoising(family, parts);
    config.exit_interval = 5;
    run(config);
    config.exit_interval = 0;
    run(config);
    EXPECT_EQ(losses(parts), losses(whole));
    EXPECT_EQ(digest_of(parts + "/checkpoints/step-00000012"),
              digest_of(whole + "/checkpoints/step-00000012"));
  }
}

/// Of a vocabulary without special tokens, marks follow its own, and the model's three are last.
TEST_F(DenoisingRun, MarksFollowTheTokensOfTheText) {
  for (const char* family : {"t5", "bart"}) {
    Problems problems;
    RunConfig config = denoising(family, "marks");
    config.model.vocabulary = 0;
    const auto prepared = prepare_run(config, problems);
    problems.raise();
    const Vocabulary& vocabulary = prepared->data->vocabulary;
    const bool spans = prepared->config.model.family == "t5";
    const TextNoise noise = spans ? kSpanCorruption : kTextInfilling;
    const auto marks = noise_marks(noise, vocabulary);
    EXPECT_EQ(std::ssize(marks), spans ? 100 : 1);
    EXPECT_EQ(marks.front(), vocabulary.size());
    EXPECT_EQ(prepared->config.model.vocabulary, marks.back() + 1 + kTranslationTokens);
  }
}

TEST_F(DenoisingRun, RefusesWhatHasNoRoomOrNoMeaning) {
  const auto says = [&](const auto& change) {
    RunConfig config = denoising("t5", "none");
    change(config);
    return refusal(config);
  };
  EXPECT_EQ(says([](RunConfig& c) { c.model.context = 5; }),
            "a sample of source-context 24 is a text of 26 tokens, of which 6 are written, but "
            "context is 5; give context at least 6, or a smaller source-context");
  EXPECT_EQ(says([](RunConfig& c) { c.model.source_context = 2; }),
            "source-context is 2, which has no room for a text; give a larger one");
  EXPECT_EQ(says([](RunConfig& c) { c.model.special_tokens = "0,0,1"; }).substr(0, 33),
            "special-tokens is 0,0,1, but ids ");
  EXPECT_EQ(says([](RunConfig& c) { c.model.vocabulary = 30; }).substr(0, 23),
            "vocab-size 30 is less t");
}

}  // namespace
}  // namespace tessera
