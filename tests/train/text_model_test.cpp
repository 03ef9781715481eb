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
#include "tessera/train/programs.h"
#include "train/tiny_step.h"

namespace tessera {
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
  model.context = s.context;
  model.init_std = 0.3;  // so that logits depend on every token
  return model;
}

/// All logits [rows, context, v] of texts that are padded at their end.
Graph whole_step(const TextWriting& writing, std::int64_t rows) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {rows, writing.context}, {}});
  builder.output(Output::Kind::Metric, "logits", writing.logits(ids, {}));
  return builder.finish();
}

Plan writing_plan(const WrittenCase& s, Device& device, int rank) {
  const ModelConfig model = written_model(s);
  const TextWriting writing = *task_of(model).text;
  const Strategy whole = strategy_of(s.parallel, BatchSplit::Whole);
  const Graph reference = whole_step(writing, s.rows), decode = write_step(writing, s.rows, 1);
  CompileOptions options;
  options.rank = rank;
  options.guard_bytes = 64;
  return compile({{kInitProgram, initialise(reference), whole},
                  {kWhole, reference, whole},
                  {kPrefillProgram, write_step(writing, s.rows, prefill_length(writing)), whole},
                  {kDecodeProgram, decode, whole},
                  {kReorderProgram, reorder_step(decode), whole}},
                 device, options);
}

/// A token that depends on where it stands.
std::int32_t token_of(std::int64_t row, std::int64_t place) {
  return static_cast<std::int32_t>((place * place * 7 + place * 3 + row * 5) % 19);
}

/// Of the texts' last tokens, from `first` on.
std::vector<std::vector<double>> of_whole(Crew& crew, std::span<const Tokens> texts,
                                          std::int64_t first) {
  const std::int64_t seen = std::ssize(texts[0]) - first;
  crew.run(kWhole, [&](BatchInputs& batch) {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids");
    std::ranges::fill(ids, 0);
    const std::int64_t context = std::ssize(ids) / std::ssize(texts);
    for (std::int64_t row = 0; row < std::ssize(texts); ++row)
      std::ranges::copy(std::span(texts[static_cast<std::size_t>(row)]).subspan(first),
                        ids.begin() + row * context);
  });
  const HostTensor logits = crew.executor().metric(kWhole, "logits");
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
      worst = std::max(worst, std::abs(a[row][i] - b[row][i]));
      scale = std::max(scale, std::abs(a[row][i]));
    }
  }
  return worst / scale;
}

class WrittenTexts : public testing::TestWithParam<WrittenCase> {
 protected:
  /// On the leader of all ranks.
  void run(const std::function<void(Crew& crew, TextModel& model)>& body) {
    const WrittenCase& s = GetParam();
    const auto rank = [&](Communicator* world) {
      const auto device = make_cpu_device({1, -1});
      const int number = world == nullptr ? 0 : world->rank();
      Crew crew(writing_plan(s, *device, number), *device, world);
      if (number > 0) return crew.follow();
      crew.run(kInitProgram);
      TextModel model(crew, *task_of(written_model(s)).text);
      EXPECT_EQ(model.rows(), s.rows);
      body(crew, model);
      EXPECT_TRUE(crew.executor().guard_intact());
      crew.dismiss();
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
  run([&](Crew& crew, TextModel& model) {
    const std::int64_t rows = GetParam().rows, context = GetParam().context;
    // One token after another, then a prompt that is read at once, and more of it in parts.
    for (std::int64_t length = 1; length <= context; ++length) {
      const std::vector<Tokens> texts = texts_of(rows, length);
      EXPECT_LT(apart(of_whole(crew, texts, 0), model.next(texts)), 1e-5) << length;
    }
    model.begin();
    for (const std::int64_t length : {context / 2, context - 3, context - 1, context}) {
      const std::vector<Tokens> texts = texts_of(rows, length);
      EXPECT_LT(apart(of_whole(crew, texts, 0), model.next(texts)), 1e-5) << length;
    }
  });
}

/// Beyond the context the earlier half of what is seen is dropped, once in half a context.
TEST_P(WrittenTexts, GoOnBeyondTheContext) {
  run([&](Crew& crew, TextModel& model) {
    const std::int64_t rows = GetParam().rows, context = GetParam().context;
    model.next(texts_of(rows, context + 5));  // a prompt that is too long: its end is seen
    std::int64_t first = 5;
    for (std::int64_t length = context + 6; length < 3 * context; ++length) {
      if (length - first > context) first = length - context / 2;
      const std::vector<Tokens> texts = texts_of(rows, length);
      EXPECT_LT(apart(of_whole(crew, texts, first), model.next(texts)), 1e-5) << length;
    }
  });
}

TEST_P(WrittenTexts, RowsChangePlaces) {
  run([&](Crew& crew, TextModel& model) {
    const std::int64_t rows = GetParam().rows;
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
    EXPECT_LT(apart(of_whole(crew, moved, 0), model.next(moved)), 1e-5);
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
        WrittenCase{"Gpt2Cp2", "gpt2", 1, 12, {.devices = 2, .context = 2}}),
    [](const auto& info) { return info.param.name; });

/// Heads are split with their caches: nothing is sent of them, and a token's step sends no more
/// than its results.
TEST(TextPlans, CachesAreNotGathered) {
  const WrittenCase s{"Tp2", "gpt2", 1, 64, {.devices = 2, .tensor = 2}};
  const auto device = make_cpu_device({1, -1});
  const Plan plan = writing_plan(s, *device, 0);
  for (const StatePlan& state : plan.states) {
    if (state.state.role != Role::Cache) continue;
    EXPECT_EQ(state.type.shape, (Shape{1, 127, 2, 4})) << state.state.path << ": half of the heads";
  }
  for (const RegionPlan& region : plan.program(kDecodeProgram).regions) {
    for (const Call& call : region.calls) {
      if (!call.transfer) continue;
      for (const TensorType& type : call.types->ins) EXPECT_LE(type.bytes(), 4 * 19) << text(type);
    }
  }
}

}  // namespace
}  // namespace tessera
