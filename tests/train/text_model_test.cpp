/// Texts continued a token at a time, with caches, against the program that computes all of a text:
/// the same logits, on meshes and pipelines too.

#include "tessera/train/text_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "tessera/comm/local.h"
#include "tessera/models/family.h"
#include "tessera/models/parallel.h"
#include "tessera/models/translation.h"
#include "tessera/train/programs.h"
#include "train/tiny_step.h"
#include "worst.h"

namespace tessera {

extern const TranslationModel kTransformerModel, kT5Model, kBartModel;  // of families

namespace {

constexpr const char* kWhole = "whole";

struct WrittenCase {
  const char* name;
  const char* family = "gpt2";
  std::int64_t rows = 1, context = 12;
  ParallelConfig parallel = {};
};

std::ostream& operator<<(std::ostream& out, const WrittenCase& s) { return out << s.name; }

ModelConfig written_model(const WrittenCase& s) {
  ModelConfig model = tiny(s.family);
  model.layers = 3;
  model.decoder_layers = 2;
  model.context = s.context;
  model.init_std = 0.3;  // so that logits depend on every token
  return model;
}

/// All logits [rows, context, v] of texts that are padded at their end.
Graph whole_step(const ModelConfig& model, const TextWriting& writing, std::int64_t rows) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {rows, writing.context}, {}});
  Value logits;
  if (writing.source > 0) {
    const Value source = builder.batch("source", {DType::I32, {rows, writing.source}, {}});
    const TranslationModel& family = model.family == "t5"     ? kT5Model
                                     : model.family == "bart" ? kBartModel
                                                              : kTransformerModel;
    logits = family.logits(model, source, ids, {});
  } else {
    logits = writing.logits(ids, {});
  }
  builder.output(Output::Kind::Metric, "logits", logits);
  return builder.finish();
}

enum class With { Whole, NothingElse };  // a program beside those that write texts

Plan writing_plan(const WrittenCase& s, Device& device, int rank, With with = With::Whole) {
  const ModelConfig model = written_model(s);
  const TextWriting writing = *task_of(model).text;
  const Strategy whole = strategy_of(s.parallel, BatchSplit::Whole, model);
  const Graph reference = whole_step(model, writing, s.rows);
  CompileOptions options;
  options.rank = rank;
  options.guard_bytes = 64;
  std::vector<ProgramSource> sources = writing_programs(writing, s.rows, whole);
  sources.push_back({kInitProgram, initialise(reference), whole});
  if (with == With::Whole) sources.push_back({kWhole, reference, whole});
  return compile(std::move(sources), device, options);
}

/// A token that depends on where it stands.
std::int32_t token_of(std::int64_t row, std::int64_t place) {
  return static_cast<std::int32_t>((place * place * 7 + place * 3 + row * 5) % 16);
}

/// Sources of unequal lengths, which end in the end token; none where the task has none.
std::vector<Tokens> sources_of(const WrittenCase& s, bool alike = false) {
  const TextWriting writing = *task_of(written_model(s)).text;
  std::vector<Tokens> out;
  for (std::int64_t row = 0; row < s.rows && writing.source > 0; ++row) {
    Tokens& source = out.emplace_back();
    const std::int64_t of = alike ? 1 : row;
    for (std::int64_t i = 0; i < writing.source - 1 - of % 3; ++i)
      source.push_back(token_of(of + 2, i));
    source.push_back(*writing.end);
  }
  return out;
}

/// Of the texts' last tokens, from `first` on.
std::vector<std::vector<double>> of_whole(RankGroup& group, const std::vector<Tokens>& sources,
                                          std::span<const Tokens> texts, std::int64_t first) {
  const std::int64_t seen = std::ssize(texts[0]) - first;
  group.run(kWhole, [&](BatchInputs& batch) {
    if (!sources.empty()) {
      const std::span<std::int32_t> ids = batch.fill<std::int32_t>("source");
      std::ranges::fill(ids, 16);  // padding
      for (std::size_t row = 0; row < sources.size(); ++row)
        std::ranges::copy(sources[row], ids.begin() + static_cast<std::ptrdiff_t>(row * ids.size() /
                                                                                  sources.size()));
    }
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids");
    std::ranges::fill(ids, 0);
    const std::int64_t context = std::ssize(ids) / std::ssize(texts);
    for (std::int64_t row = 0; row < std::ssize(texts); ++row)
      std::ranges::copy(std::span(texts[static_cast<std::size_t>(row)]).subspan(first),
                        ids.begin() + row * context);
  });
  const HostTensor logits = group.engine().metric(kWhole, "logits");
  const std::int64_t context = logits.shape()[1], width = logits.shape()[2];
  std::vector<std::vector<double>> out;
  for (std::int64_t row = 0; row < std::ssize(texts); ++row) {
    const float* values = logits.data<float>() + (row * context + seen - 1) * width;
    out.emplace_back(values, values + width);
  }
  return out;
}

double apart(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double worst = 0, scale = 1e-30;
  for (std::size_t row = 0; row < a.size(); ++row) {
    for (std::size_t i = 0; i < a[row].size(); ++i) {
      worst = worse_of(worst, std::abs(a[row][i] - b[row][i]));
      scale = std::max(scale, std::abs(a[row][i]));
    }
  }
  return worst / scale;
}

class WrittenTexts : public testing::TestWithParam<WrittenCase> {
 protected:
  /// On the leader of all ranks.
  void run(const std::function<void(RankGroup& group, TextModel& model)>& body) {
    const WrittenCase& s = GetParam();
    const auto rank = [&](Communicator* world) {
      const auto device = make_cpu_device({1, -1});
      const int number = world == nullptr ? 0 : world->rank();
      RankGroup group(writing_plan(s, *device, number), *device, world);
      if (number > 0) return group.follow();
      group.run(kInitProgram);
      TextModel model(group, *task_of(written_model(s)).text);
      model.begin(sources_of(s));
      EXPECT_EQ(model.rows(), s.rows);
      body(group, model);
      EXPECT_TRUE(group.engine().guard_intact());
      group.stop();
    };
    if (s.parallel.devices == 1) return rank(nullptr);
    run_ranks(static_cast<int>(s.parallel.devices), [&](Communicator& world) { rank(&world); });
  }

  static std::vector<Tokens> texts_of(std::int64_t rows, std::int64_t length) {
    std::vector<Tokens> out(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < length; ++i)
        out[static_cast<std::size_t>(row)].push_back(token_of(row, i));
    }
    return out;
  }
};

TEST_P(WrittenTexts, HaveTheLogitsOfTheWholeText) {
  run([&](RankGroup& group, TextModel& model) {
    const std::int64_t rows = GetParam().rows, context = GetParam().context;
    const std::vector<Tokens> sources = sources_of(GetParam());
    // One token after another, then a prompt that is read at once, and more of it in parts.
    for (std::int64_t length = 1; length <= context; ++length) {
      const std::vector<Tokens> texts = texts_of(rows, length);
      EXPECT_LT(apart(of_whole(group, sources, texts, 0), model.next(texts)), 1e-5) << length;
    }
    model.begin(sources);
    for (const std::int64_t length : {context / 2, context - 3, context - 1, context}) {
      const std::vector<Tokens> texts = texts_of(rows, length);
      EXPECT_LT(apart(of_whole(group, sources, texts, 0), model.next(texts)), 1e-5) << length;
    }
  });
}

/// Beyond the context the earlier half of what is seen is dropped, once in half a context.
TEST_P(WrittenTexts, GoOnBeyondTheContext) {
  if (!sources_of(GetParam()).empty()) GTEST_SKIP() << "a text with a source ends there";
  run([&](RankGroup& group, TextModel& model) {
    const std::int64_t rows = GetParam().rows, context = GetParam().context;
    model.next(texts_of(rows, context + 5));  // a prompt that is too long: its end is seen
    std::int64_t first = 5;
    for (std::int64_t length = context + 6; length < 3 * context; ++length) {
      if (length - first > context) first = length - context / 2;
      const std::vector<Tokens> texts = texts_of(rows, length);
      EXPECT_LT(apart(of_whole(group, {}, texts, first), model.next(texts)), 1e-5) << length;
    }
  });
}

TEST_P(WrittenTexts, RowsChangePlaces) {
  run([&](RankGroup& group, TextModel& model) {
    const std::int64_t rows = GetParam().rows;
    const std::vector<Tokens> sources = sources_of(GetParam(), /*alike=*/true);
    model.begin(sources);
    std::vector<Tokens> texts = texts_of(rows, 4);
    model.next(texts);
    std::vector<std::int32_t> from;
    std::vector<Tokens> moved;
    for (std::int64_t row = 0; row < rows; ++row) {
      from.push_back(static_cast<std::int32_t>((row + 1) % std::max<std::int64_t>(rows - 1, 1)));
      moved.push_back(texts[static_cast<std::size_t>(from.back())]);
      moved.back().push_back(token_of(row, 9));
    }
    model.reorder(from);
    EXPECT_LT(apart(of_whole(group, sources, moved, 0), model.next(moved)), 1e-5);
  });
}

/// What another text left in the caches, NaN too, is not read.
TEST_P(WrittenTexts, BeginWithNothingOfOthers) {
  run([&](RankGroup& group, TextModel& model) {
    for (const StatePlan& state : group.plan().states) {
      if (state.state.role != Role::Cache || !group.plan().has(state)) continue;
      group.engine().write_state(state.state.path, [](std::span<std::byte> bytes) {
        std::ranges::fill(bytes, std::byte{0xff});
      });
    }
    const std::vector<Tokens> sources = sources_of(GetParam()),
                              texts = texts_of(GetParam().rows, 3);
    model.begin(sources);
    EXPECT_LT(apart(of_whole(group, sources, texts, 0), model.next(texts)), 1e-5);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Texts, WrittenTexts,
    testing::Values(
        WrittenCase{"Gpt2"}, WrittenCase{"Llama", "llama"}, WrittenCase{"Gpt2Rows", "gpt2", 3},
        WrittenCase{"LlamaRows", "llama", 3}, WrittenCase{"Gpt2InParts", "gpt2", 1, 150},
        WrittenCase{"Gpt2Tp2", "gpt2", 2, 12, {.devices = 2, .tensor = 2}},
        WrittenCase{"LlamaTp2", "llama", 1, 70, {.devices = 2, .tensor = 2}},
        WrittenCase{"Gpt2Pp2", "gpt2", 2, 12, {.devices = 2, .pipeline = 2}},
        WrittenCase{"LlamaPp2Tp2", "llama", 2, 12, {.devices = 4, .pipeline = 2, .tensor = 2}},
        WrittenCase{"Gpt2Dp2Zero3", "gpt2", 2, 12, {.devices = 2, .shard_parameters = true}},
        WrittenCase{"Gpt2Cp2", "gpt2", 1, 12, {.devices = 2, .context = 2}},
        WrittenCase{"Translation", "transformer"}, WrittenCase{"TranslationRows", "transformer", 3},
        WrittenCase{"TranslationInParts", "transformer", 2, 150},
        WrittenCase{"TranslationPost", "transformer_post", 2}, WrittenCase{"T5", "t5", 2},
        WrittenCase{"T5InParts", "t5_relu", 1, 150}, WrittenCase{"Bart", "bart", 2},
        WrittenCase{"BartTp2", "bart", 2, 12, {.devices = 2, .tensor = 2}},
        WrittenCase{"BartPp3", "bart", 1, 12, {.devices = 3, .pipeline = 3}},
        WrittenCase{"T5Tp4", "t5", 3, 12, {.devices = 4, .tensor = 4}},
        WrittenCase{"T5Cp2", "t5_relu", 2, 12, {.devices = 2, .context = 2}},
        WrittenCase{"T5Pp5", "t5", 2, 12, {.devices = 5, .pipeline = 5}},
        WrittenCase{"T5Pp2Zero3",
                    "t5_relu",
                    2,
                    12,
                    {.devices = 4, .pipeline = 2, .shard_parameters = true}},
        WrittenCase{"TranslationTp2", "transformer", 2, 12, {.devices = 2, .tensor = 2}},
        WrittenCase{"TranslationPostTp4", "transformer_post", 3, 12, {.devices = 4, .tensor = 4}},
        WrittenCase{"TranslationCp2", "transformer", 2, 12, {.devices = 2, .context = 2}},
        WrittenCase{"TranslationCp2Tp2",
                    "transformer_post",
                    1,
                    12,
                    {.devices = 4, .tensor = 2, .context = 2}},
        WrittenCase{
            "TranslationDp2Zero3", "transformer", 2, 12, {.devices = 2, .shard_parameters = true}},
        WrittenCase{"TranslationDp3Zero3",
                    "transformer_post",
                    2,
                    12,
                    {.devices = 3, .shard_parameters = true}},
        WrittenCase{"TranslationDp2Tp2Zero3",
                    "transformer",
                    2,
                    12,
                    {.devices = 4, .tensor = 2, .shard_parameters = true}},
        WrittenCase{"TranslationPp2", "transformer", 2, 12, {.devices = 2, .pipeline = 2}},
        WrittenCase{"TranslationPostPp2", "transformer_post", 3, 12, {.devices = 2, .pipeline = 2}},
        WrittenCase{"TranslationPp3", "transformer", 1, 12, {.devices = 3, .pipeline = 3}},
        WrittenCase{"TranslationPostPp5", "transformer_post", 2, 12, {.devices = 5, .pipeline = 5}},
        WrittenCase{
            "TranslationPp2Tp2", "transformer", 2, 12, {.devices = 4, .pipeline = 2, .tensor = 2}},
        WrittenCase{"TranslationPp2Zero3",
                    "transformer_post",
                    2,
                    12,
                    {.devices = 4, .pipeline = 2, .shard_parameters = true}}),
    [](const auto& info) { return info.param.name; });

/// Heads are split with their caches: nothing is sent of them, and a token's step sends no more
/// than its results.
TEST(TextPlans, CachesAreNotGathered) {
  for (const char* family : {"gpt2", "transformer"}) {
    SCOPED_TRACE(family);
    const WrittenCase s{"Tp2", family, 1, 64, {.devices = 2, .tensor = 2}};
    const auto device = make_cpu_device({1, -1});
    const Plan plan = writing_plan(s, *device, 0);
    for (const StatePlan& state : plan.states) {
      const std::string& path = state.state.path;
      if (state.state.role != Role::Cache || path.ends_with(".seen")) continue;
      const std::int64_t tokens = path.find(".cross.") == path.npos ? 127 : 6;
      EXPECT_EQ(state.type.shape, (Shape{1, tokens, 2, 4})) << path << ": half of the heads";
    }
    for (const RegionPlan& region : plan.program(kDecodeProgram).regions) {
      for (const Call& call : region.calls) {
        if (!call.transfer) continue;
        for (const TensorType& type : call.types->ins)
          EXPECT_LE(type.bytes(), 4 * 19) << text(type);
      }
    }
  }
}

/// Caches lie where their layer does, and only there; a token reads them, and nothing of the
/// encoder's weights.
TEST(TextPlans, ATokenCostsNoEncoder) {
  const WrittenCase s{"Pp2", "transformer", 2, 12, {.devices = 2, .pipeline = 2}};
  const auto device = make_cpu_device({1, -1});
  const Plan plan = writing_plan(s, *device, 0);
  std::map<std::string, std::vector<int>> stages;
  for (const StatePlan& state : plan.states) stages[state.state.path] = state.stages;
  for (const char* layer : {"decoder.layers.0", "decoder.layers.1"}) {
    for (const char* cache :
         {"attn.keys", "attn.values", "cross.keys", "cross.values", "cross.seen"})
      EXPECT_EQ(stages.at(text(layer, ".", cache)), stages.at(text(layer, ".cross.q.weight")));
  }
  const TextWriting writing = *task_of(written_model(s)).text;
  const Graph token = write_step(writing, s.rows, 1);
  for (const State& state : token.states()) {
    EXPECT_FALSE(state.path.starts_with("encoder.")) << state.path;
    EXPECT_FALSE(state.path.ends_with("cross.kv.weight")) << state.path;
  }
}

/// The logits of three tokens, one after the other.
std::vector<std::vector<double>> written_alone(const WrittenCase& s) {
  std::vector<std::vector<double>> out;
  const auto rank = [&](Communicator* world) {
    const auto device = make_cpu_device({1, -1});
    const int number = world == nullptr ? 0 : world->rank();
    RankGroup group(writing_plan(s, *device, number, With::NothingElse), *device, world);
    if (number > 0) return group.follow();
    group.run(kInitProgram);
    TextModel model(group, *task_of(written_model(s)).text);
    model.begin(sources_of(s));
    std::vector<Tokens> texts(static_cast<std::size_t>(s.rows));
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::size_t row = 0; row < texts.size(); ++row)
        texts[row].push_back(token_of(static_cast<std::int64_t>(row), i));
      for (std::vector<double>& logits : model.next(texts)) out.push_back(std::move(logits));
    }
    group.stop();
  };
  if (s.parallel.devices == 1) {
    rank(nullptr);
  } else {
    run_ranks(static_cast<int>(s.parallel.devices), [&](Communicator& world) { rank(&world); });
  }
  return out;
}

/// No program has all blocks: one reads the source, others write. Together they cut the model.
TEST(TextPlans, StagesAreCutWithoutAProgramOfTheWholeModel) {
  for (const char* family : {"gpt2", "transformer", "transformer_post", "t5", "bart"}) {
    const std::vector<std::vector<double>> one = written_alone({"One", family, 2});
    for (const ParallelConfig& parallel :
         {ParallelConfig{.devices = 2, .pipeline = 2}, ParallelConfig{.devices = 3, .pipeline = 3},
          ParallelConfig{.devices = 4, .pipeline = 2, .tensor = 2},
          ParallelConfig{.devices = 4, .pipeline = 2, .shard_parameters = true}}) {
      SCOPED_TRACE(text(family, " ", parallel.devices, " ", parallel.pipeline));
      EXPECT_LT(apart(one, written_alone({"Stages", family, 2, 12, parallel})), 1e-5);
    }
  }
}

std::string refused_text(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TextModels, JudgeWhatTheyAreGiven) {
  const WrittenCase s{"Rows", "transformer", 2};
  const auto device = make_cpu_device({1, -1});
  RankGroup group(writing_plan(s, *device, 0), *device);
  group.run(kInitProgram);
  TextModel model(group, *task_of(written_model(s)).text);
  const std::vector<Tokens> one = {{17}}, two = {{17}, {17}}, uneven = {{17, 1}, {17}},
                            grown = {{17, 1}, {17, 1}}, other = {{16, 1}, {17, 1}};
  EXPECT_EQ(refused_text([&] { model.next(two); }),
            "0 sources are given for 2 rows; give one for each");
  const std::vector<Tokens> longest = {{1, 18}, {1, 2, 3, 4, 5, 6, 18}}, empty = {{1, 18}, {}};
  EXPECT_EQ(refused_text([&] { model.begin(longest); }),
            "the source of row 1 has 7 tokens; give 1 to 6");
  EXPECT_EQ(refused_text([&] { model.begin(empty); }),
            "the source of row 1 has 0 tokens; give 1 to 6");
  const std::vector<Tokens> sources = {{1, 18}, {2, 18}};
  model.begin(sources);
  EXPECT_EQ(refused_text([&] { model.next(one); }),
            "1 texts are given for 2 rows; give one for each");
  EXPECT_EQ(refused_text([&] { model.next(uneven); }),
            "text 1 has 1 token, text 0 has 2; texts continued together must have one length");
  model.next(two);
  EXPECT_NE(refused_text([&] { model.next(two); }).find("had 1 in the previous call"),
            std::string::npos);
  EXPECT_NE(refused_text([&] { model.next(other); }).find("does not begin with its tokens"),
            std::string::npos);
  EXPECT_EQ(refused_text([&] { model.reorder(std::vector<std::int32_t>{0}); }),
            "1 rows are named for 2; name one for each");
  EXPECT_EQ(refused_text([&] {
              model.reorder(std::vector<std::int32_t>{0, 2});
            }),
            "row 1 is to continue row 2; the rows are 0 to 1");
  EXPECT_EQ(refused_text([&] {
              model.reorder(std::vector<std::int32_t>{0, 0});
            }),
            "row 1 is to continue row 0, which has another source");
  model.next(grown);
  EXPECT_EQ(model.most_behind(1), 12);
  const std::vector<Tokens> beyond(2, Tokens(13, 17));
  model.begin(sources);
  EXPECT_NE(refused_text([&] { model.next(beyond); }).find("13 tokens, the model's context is 12"),
            std::string::npos);

  // Weights that are no numbers: an error, not a text.
  group.engine().write_state("decoder.norm.weight", [](std::span<std::byte> weight) {
    std::ranges::fill(weight, std::byte{0xff});
  });
  try {
    model.next(two);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Numerics);
    EXPECT_NE(std::string(error.what()).find("the logits of token 2 of text 1 are not finite"),
              std::string::npos)
        << error.what();
  }
}

TEST(TextModels, OfOneTextAloneHaveNoSources) {
  const WrittenCase s{"Gpt2"};
  const auto device = make_cpu_device({1, -1});
  RankGroup group(writing_plan(s, *device, 0), *device);
  TextModel model(group, *task_of(written_model(s)).text);
  const std::vector<Tokens> sources = {{1}};
  EXPECT_EQ(refused_text([&] { model.begin(sources); }),
            "1 sources are given, but the model takes none; give none");
  EXPECT_GT(model.most_behind(1000), 1'000'000);
}

}  // namespace
}  // namespace tessera
