#include "tessera/config/config.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/presets.h"
#include "tessera/schedule/schedule.h"
#include "tessera/train/step.h"

namespace tessera {
namespace {

struct Told {
  RunConfig config;
  Problems problems;
  std::vector<std::string> notices;
};

Told tell(const std::vector<Setting>& file, const std::vector<Setting>& flags) {
  Told out;
  out.config = configure(file, flags, out.problems, out.notices);
  return out;
}

Setting flag(const std::string& name, const std::string& value) {
  return {name, {value}, "--" + name};
}

TEST(Fields, NamesAreUniqueAndEveryFieldReadsBackWhatItWrites) {
  std::set<std::string> names;
  for (const Field& field : fields()) {
    SCOPED_TRACE(std::string(field.name));
    for (const std::string& name : field_names(field)) {
      EXPECT_TRUE(names.insert(name).second) << name << " names two fields";
      EXPECT_EQ(find_field(name).field, &field) << name;
    }
    for (const Preset& preset : presets()) {
      RunConfig config, copy;
      preset.apply(config);
      config.data = {"a b.txt"};
      if (is_list(field)) {
        set_text(field, copy, "a b.txt", "");
      } else {
        set_text(field, copy, get_text(field, config), "");
      }
      EXPECT_EQ(get_text(field, copy), is_list(field) ? "a b.txt" : get_text(field, config));
    }
  }
}

/// A checkpoint records every field, as JSON.
TEST(Fields, TextIsUtf8) {
  for (const char* name : {"output", "data", "valid-data", "resume"}) {
    RunConfig config;
    const Field& field = *find_field(name).field;
    set_text(field, config, "caf\xc3\xa9.txt", "--x");
    try {
      set_text(field, config, "caf\xe9.txt", text("--", name));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_EQ(std::string(error.what()),
                text("--", name, " is not UTF-8 after 'caf'; give a name in UTF-8"));
    }
  }
}

TEST(Config, RecordsReadBack) {
  for (const Preset& preset : presets()) {
    RunConfig config;
    preset.apply(config);
    config.data = {"one.txt", "two \"quoted\".txt"};
    config.optimizer.schedule.lr = 0.1 + 0.2;  // needs all 17 digits
    complete(config);
    EXPECT_EQ(record_of(config_of(record_of(config), "here")), record_of(config));
  }
}

/// A list is recorded as lines: such a name would come back as two, or without its first character.
TEST(Config, ANameWithALineBreakIsRefused) {
  for (const char* name : {"\nf", "f\n", "one\ntwo", "\n"}) {
    SCOPED_TRACE(name);
    Told told = tell({{"data", {"a", name}, "data in run.toml:1"}}, {});
    ASSERT_EQ(told.problems.list().size(), 1u);
    const std::string before = std::string(name).substr(0, std::string(name).find('\n'));
    EXPECT_EQ(std::string(told.problems.list().front().what()),
              "data in run.toml:1 has a line break after '" + before + "'; rename the file");
  }
}

TEST(Config, ADamagedRecordIsRefused) {
  try {
    config_of({{"layers", "many"}}, "'here'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Checkpoint);
    EXPECT_EQ(
        std::string(error.what()),
        "'here': layers is 'many'; it must be a whole number, like 100 (in its configuration)");
  }
}

TEST(Config, PresetsAreThePublishedRecipes) {
  const RunConfig nano = tell({}, {flag("preset", "nanogpt-shakespeare-cpu")}).config;
  EXPECT_EQ(
      nano.model,
      (ModelConfig{
          .layers = 4, .heads = 4, .width = 128, .context = 64, .vocabulary = 0, .bias = false}));
  EXPECT_EQ(nano.optimizer.beta2, 0.99);
  EXPECT_EQ(nano.optimizer.weight_decay, 0.1);
  EXPECT_EQ(nano.optimizer.clip, 1.0);
  EXPECT_EQ(nano.optimizer.schedule.warmup_steps, 100);
  EXPECT_EQ(nano.optimizer.schedule.lr, 1e-3);
  EXPECT_EQ(nano.optimizer.schedule.min_lr, 1e-4);
  EXPECT_EQ(nano.optimizer.schedule.kind, ScheduleKind::Cosine);
  EXPECT_EQ(nano.global_batch_size, 12);
  EXPECT_EQ(nano.steps, 2000);
  EXPECT_EQ(nano.sample_order, SampleOrder::RandomOffsets);
  EXPECT_EQ(nano.vocabulary, VocabularyKind::Characters);

  const RunConfig llama = tell({}, {flag("preset", "llama-tiny")}).config;
  EXPECT_EQ(llama.model.kv_heads, 4);
  EXPECT_EQ(llama.model.ffn_width, 172);
  const RunConfig small = tell({}, {flag("preset", "gpt2-small")}).config;
  EXPECT_EQ(small.model.vocabulary, 50'257);
  EXPECT_EQ(small.model.dropout, 0.1);
  EXPECT_EQ(small.global_batch_size, 4);
  const RunConfig bert = tell({}, {flag("preset", "bert-base-pretrain")}).config;
  EXPECT_EQ(to_text(bert.model.family), "bert");
  EXPECT_EQ(bert.model.layers, 12);
  EXPECT_EQ(bert.model.heads, 12);
  EXPECT_EQ(bert.model.width, 768);
  EXPECT_EQ(bert.model.context, 128);
  EXPECT_EQ(bert.model.vocabulary, 30'522);
  EXPECT_EQ(bert.model.masked_positions, 0);
  EXPECT_EQ(bert.model.dropout, 0.1);
  EXPECT_EQ(bert.global_batch_size, 8);
  EXPECT_EQ(bert.optimizer.schedule.kind, ScheduleKind::Linear);
  for (const Preset& preset : presets()) {
    RunConfig config;
    preset.apply(config);
    complete(config);
    Problems problems;
    find_problems(config, problems);
    EXPECT_TRUE(problems.empty()) << preset.name << ": " << problems.list().front().what();
  }
}

/// To rounding.
TEST(Config, PublishedModelsHaveTheParametersThatTheirAuthorsSay) {
  int published = 0;
  for (const Preset& preset : presets()) {
    EXPECT_EQ(preset.source.empty(), preset.parameters == 0) << preset.name;
    if (preset.source.empty()) continue;
    ++published;
    RunConfig config;
    preset.apply(config);
    complete(config);
    double parameters = 0;
    const Graph step =
        train_step(task_of(config.model), config.optimizer, config.global_batch_size);
    for (const State& state : step.states()) {
      if (state.role == Role::Parameter)
        parameters += static_cast<double>(step.type(state.value).shape.numel());
    }
    EXPECT_NEAR(parameters / preset.parameters, 1, 0.015) << preset.name << ": " << parameters;
    EXPECT_EQ(config.micro_batch_size, 1) << preset.name;
    EXPECT_FALSE(config.eval_at_end) << preset.name;
  }
  EXPECT_EQ(published, 10);
}

TEST(Config, FlagsBeatTheFileAndTheFileBeatsThePreset) {
  const Told told =
      tell({{"layers", {"6"}, "layers in run.toml:1"}, {"heads", {"2"}, "heads in run.toml:2"}},
           {flag("preset", "gpt2-tiny"), flag("num-layers", "7")});
  EXPECT_TRUE(told.problems.empty());
  EXPECT_EQ(told.config.model.layers, 7);
  EXPECT_EQ(told.config.model.heads, 2);
  EXPECT_EQ(told.config.model.context, 32);
  EXPECT_EQ(
      told.notices,
      (std::vector<std::string>{"--num-layers 7 overrides layers in run.toml:1, which is 6"}));
}

TEST(Config, MessagesSayWhatWasTyped) {
  struct Row {
    const char* why;
    Setting file, flag;
    const char* notice;
  };
  const Row rows[] = {
      {"a switch that is off",
       {"fp16", {"true"}, "fp16 in run.toml:3"},
       {"no-fp16", {"true"}, "--no-fp16"},
       "--no-fp16 overrides fp16 in run.toml:3, which is true"},
      {"a switch that is off twice",
       {"fp16", {"false"}, "fp16 in run.toml:3"},
       {"no-fp16", {"false"}, "--no-fp16"},
       "--no-fp16 false overrides fp16 in run.toml:3, which is false"},
      {"a file that says no",
       {"no-fp16", {"true"}, "no-fp16 in run.toml:3"},
       {"fp16", {"true"}, "--fp16"},
       "--fp16 overrides no-fp16 in run.toml:3, which is true"},
      {"the name of other trainers",
       {"graph-optimization", {"true"}, "graph-optimization in run.toml:3"},
       {"no-onnx-runtime-training", {"true"}, "--no-onnx-runtime-training"},
       "--no-onnx-runtime-training overrides graph-optimization in run.toml:3, which is true"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    const Told told = tell({row.file}, {row.flag});
    EXPECT_TRUE(told.problems.empty());
    EXPECT_EQ(told.notices, std::vector<std::string>{row.notice});
  }
}

/// The file is that of a run in f16, which names every switch.
/// Of a run on a text.
std::vector<std::string> problems_of(const std::vector<Setting>& file, std::vector<Setting> flags) {
  flags.push_back(flag("data", "text.txt"));
  Told told = tell(file, flags);
  complete(told.config);
  find_problems(told.config, told.problems);
  std::vector<std::string> out;
  for (const Error& problem : told.problems.list()) out.emplace_back(problem.what());
  return out;
}

TEST(Config, TwoKindsOf16BitFloatsAreBothNamed) {
  const std::vector<Setting> file = {{"fp16", {"true"}, "fp16 in run.toml:3"},
                                     {"bf16", {"false"}, "bf16 in run.toml:4"}};
  const auto problems_with = [&](const std::vector<Setting>& flags) {
    return problems_of(file, flags);
  };
  EXPECT_EQ(problems_with({flag("bf16", "true")}),
            std::vector<std::string>{"--bf16 computes in bf16, but fp16 true in run.toml:3 in f16; "
                                     "give one, or cancel one: no-fp16, no-bf16"});
  EXPECT_EQ(problems_with({flag("bf16", "true"), {"no-fp16", {"true"}, "--no-fp16"}}),
            std::vector<std::string>());
}

TEST(Config, Tf32IsForGpus) {
  EXPECT_EQ(problems_of({}, {flag("tf32", "true")}),
            std::vector<std::string>{"tf32 is for products on GPUs, and device is cpu; leave tf32 "
                                     "out, or give device pjrt:cuda"});
  EXPECT_TRUE(problems_of({}, {flag("tf32", "true"), flag("device", "pjrt:cuda")}).empty());
}

TEST(Config, RingsNeedPartsOfOneLength) {
  const auto notices = [&](const char* context, const char* exchange) {
    return tell({}, {flag("devices", "4"), flag("context-parallel-size", "4"),
                     flag("context", context), flag("cp-comm-type", exchange)})
        .notices;
  };
  EXPECT_EQ(
      notices("30", "p2p"),
      std::vector<std::string>{"context 30 is not a multiple of context-parallel-size 4: each "
                               "device gathers the keys of all; nearest multiples are 28 and "
                               "32"});
  EXPECT_TRUE(notices("32", "p2p").empty());
  for (const char* other : {"all_gather", "a2a", "auto"}) EXPECT_TRUE(notices("30", other).empty());
}

TEST(Config, ParallelismOfOneDeviceIsTold) {
  const auto notices = [](const std::vector<Setting>& flags) {
    std::vector<std::string> out;
    note_idle_parallelism(tell({}, flags).config, out);
    return out;
  };
  const Setting sequence = {"sequence-parallel", {"true"}, "--sequence-parallel"};
  const Setting ring = flag("cp-comm-type", "p2p");
  EXPECT_EQ(
      notices({sequence, ring}),
      (std::vector<std::string>{
          "--sequence-parallel does nothing with tensor-model-parallel-size 1; raise that, or "
          "leave sequence-parallel out",
          "--cp-comm-type p2p does nothing with context-parallel-size 1; raise that, or leave "
          "cp-comm-type out"}));
  EXPECT_TRUE(notices({flag("devices", "4"), flag("tensor-model-parallel-size", "2"),
                       flag("context-parallel-size", "2"), sequence, ring})
                  .empty());
  EXPECT_TRUE(notices({}).empty());
}

TEST(Config, PackingDoesNothingWithoutGraphOptimization) {
  const Setting off = {"no-graph-optimization", {"true"}, "--no-graph-optimization"};
  EXPECT_EQ(tell({}, {off, flag("pack-weights", "yes")}).notices,
            std::vector<std::string>{"--pack-weights yes does nothing: packing weights is part of "
                                     "graph-optimization, which is off"});
  for (const char* value : {"auto", "no"})
    EXPECT_TRUE(tell({}, {off, flag("pack-weights", value)}).notices.empty()) << value;
  EXPECT_TRUE(tell({}, {flag("pack-weights", "yes")}).notices.empty());
}

/// Two names of one answer, which may say it twice but not disagree; the later origin answers.
TEST(Config, MixedPrecisionIsBf16) {
  const Setting no_mixed = {"no-mixed-precision", {"true"}, "--no-mixed-precision"};
  const auto problem = [](const Told& told) {
    return told.problems.list().empty() ? "" : std::string(told.problems.list()[0].what());
  };
  EXPECT_EQ(problem(tell({}, {flag("bf16", "true"), flag("mixed-precision", "true")})), "");
  EXPECT_EQ(problem(tell({}, {flag("bf16", "true"), no_mixed})),
            "--bf16 and --no-mixed-precision disagree: both set whether the run computes in bf16; "
            "give one");
  const Told off = tell({flag("bf16", "true")}, {no_mixed});
  EXPECT_EQ(problem(off), "");
  EXPECT_FALSE(off.config.bf16 || off.config.mixed_precision);
}

TEST(Config, AFamilyHasItsOwnDefaults) {
  struct Case {
    std::vector<Setting> flags;
    bool bias, tied_head;
    std::int64_t ffn_width;
  };
  const Case cases[] = {
      {{}, true, true, 0},
      {{flag("family", "llama")}, false, false, 344},  // 8/3 of 128 is 341.3
      {{flag("family", "llama"), flag("width", "96")}, false, false, 256},
      {{flag("family", "llama"), flag("tied-head", "true"), flag("ffn-width", "512")},
       false,
       true,
       512},
      {{flag("preset", "gpt2-tiny"), flag("family", "llama")},
       false,
       true,
       172},  // it has no biases
  };
  for (const Case& c : cases) {
    RunConfig config = tell({}, c.flags).config;
    EXPECT_EQ(config.model.ffn_width, c.ffn_width == 512 ? 512 : 0) << "told, not derived";
    complete(config);
    EXPECT_EQ(config.model.bias, c.bias);
    EXPECT_EQ(config.model.tied_head, c.tied_head);
    EXPECT_EQ(config.model.ffn_width, c.ffn_width);
  }
}

TEST(Config, KnowsWhatNobodyTold) {
  const RunConfig some = tell({{"layers", {"6"}, "layers in run.toml:1"}, {"preset", {""}, "p"}},
                              {flag("num-attention-heads", "2")})
                             .config;
  EXPECT_FALSE(some.defaulted.contains("layers"));
  EXPECT_FALSE(some.defaulted.contains("heads"));
  EXPECT_TRUE(some.defaulted.contains("width"));
  const RunConfig preset = tell({}, {flag("preset", "gpt2-tiny"), flag("held-out", "0.2")}).config;
  for (const Field& field : fields())
    EXPECT_EQ(preset.defaulted.contains(field.name),
              field.group == FieldGroup::Data && field.name != "held-out")
        << field.name;
}

TEST(Config, TheSeedsNamesAreAliases) {
  const Told told = tell({}, {flag("train-iters", "9"), flag("data-path", "a"), flag("data", "b"),
                              flag("hidden-size", "96"), flag("disable-bias-linear", "true"),
                              flag("no-tied-head", "true"), flag("lr-decay-iters", "50")});
  EXPECT_TRUE(told.problems.empty());
  EXPECT_EQ(told.config.steps, 9);
  EXPECT_EQ(told.config.data, (std::vector<std::string>{"a", "b"})) << "a list takes all";
  EXPECT_EQ(told.config.model.width, 96);
  EXPECT_FALSE(told.config.model.bias);
  EXPECT_FALSE(told.config.model.tied_head);
  EXPECT_EQ(told.config.optimizer.schedule.decay_steps, 50);
}

TEST(Config, TheDecayLastsAsLongAsTheRunUnlessTheWarmupIsLonger) {
  struct Case {
    std::int64_t steps, warmup, decay, want;
  };
  for (const Case& c : {Case{2000, 100, 0, 2000}, Case{4, 100, 0, 101}, Case{4, 100, 500, 500}}) {
    RunConfig config;
    config.steps = c.steps;
    config.optimizer.schedule.warmup_steps = c.warmup;
    config.optimizer.schedule.decay_steps = c.decay;
    complete(config);
    EXPECT_EQ(config.optimizer.schedule.decay_steps, c.want);
  }
}

TEST(Config, NoWeightDecayForIsTheLastGroup) {
  Told told =
      tell({}, {{"no-weight-decay-for", {"embed.*", "head.weight"}, "--no-weight-decay-for"}});
  EXPECT_TRUE(told.config.optimizer.groups.empty()) << "complete() makes the group";
  told.config.optimizer.groups = {{.paths = {"*"}, .lr_scale = 2}};
  for (int times = 0; times < 2; ++times) {
    complete(told.config);
    ASSERT_EQ(told.config.optimizer.groups.size(), 2u);
    const ParameterGroup want{.paths = {"embed.*", "head.weight"}, .weight_decay = 0};
    EXPECT_EQ(told.config.optimizer.groups[1], want);
  }
}

TEST(Config, TomlNamesEveryField) {
  RunConfig config;
  config.data = {"a\"b.txt"};
  const std::string toml = to_toml(config);
  for (const Field& field : fields())
    EXPECT_NE(toml.find(text("\n", field.name, " = ")), std::string::npos) << field.name;
  EXPECT_NE(toml.find("data = [\"a\\\"b.txt\"]"), std::string::npos);
  EXPECT_NE(toml.find("clip-grad = 1.0\n"), std::string::npos) << "a TOML float has a point";
}

/// Micro-batches are shared out over the data parallel devices of a stage.
TEST(Config, PipelinesLeaveFewerDataParallelDevices) {
  struct Case {
    std::vector<Setting> flags;
    std::int64_t micro_batch_size, micro_batches;
    std::string refusal;  // empty: none
  };
  const Setting devices = flag("devices", "8"), stages = flag("pipeline-model-parallel-size", "4");
  const Setting samples = flag("global-batch-size", "16");
  const Case cases[] = {
      {{devices, samples}, 2, 1, ""},
      {{devices, samples, stages}, 8, 1, ""},
      {{devices, samples, stages, flag("micro-batch-size", "1")}, 1, 8, ""},
      {{devices, samples, stages, flag("tensor-parallel-size", "2"), flag("micro-batch-size", "2")},
       2,
       8,
       ""},
      {{devices, samples, stages, flag("micro-batch-size", "3")},
       3,
       3,
       "micro-batch-size 3 x 2 data parallel devices does not divide global-batch-size 16; "
       "micro-batch-size can be 1, 2, 4, 8"},
      {{devices, samples, flag("pipeline-parallel-size", "3")},
       8,
       1,
       "devices 8 is not a multiple of pipeline-model-parallel-size 3 x "
       "tensor-model-parallel-size 1 x context-parallel-size 1; nearest: devices 6 or 9"},
      {{devices, stages, flag("pipeline-schedule", "zb")},
       4,
       1,
       text("pipeline-schedule is 'zb'; it can be ", join(schedule_names()))},
  };
  for (const Case& c : cases) {
    Told told = tell({}, c.flags);
    ASSERT_TRUE(told.problems.empty()) << told.problems.list().front().what();
    complete(told.config);
    EXPECT_EQ(told.config.micro_batch_size, c.micro_batch_size);
    EXPECT_EQ(told.config.micro_batches(), c.micro_batches);
    find_problems(told.config, told.problems);
    std::string refusal;
    for (const Error& problem : told.problems.list()) refusal += problem.what();
    EXPECT_EQ(refusal, c.refusal);
  }
}

/// One wrong value is one problem: what follows from it alone is not told.
/// Ranks that are processes take from rank 0 what can be recorded, and have the rest themselves.
TEST(Config, ARecordOverAnotherKeepsWhatIsNoField) {
  RunConfig leads, follows;
  leads.steps = 7, leads.data = {"a", "b"};
  follows.steps = 8, follows.data = {"c"};
  follows.optimizer.groups = {{.paths = {"*"}, .weight_decay = 0.5}};
  const RunConfig config = config_over(follows, record_of(leads), "here");
  EXPECT_EQ(config.steps, 7);
  EXPECT_EQ(config.data, leads.data);
  EXPECT_EQ(config.optimizer.groups.size(), 1u);
}

/// A RunConfig says all that MindSpore's parallel configuration says, so that runs record it.
TEST(Config, SaysWhatATransformerOpParallelConfigSays) {
  for (const auto& [parallel, devices] :
       {std::pair<TransformerOpParallelConfig, std::int64_t>{{}, 1},
        {{.model_parallel = 8, .vocab_emb_dp = false}, 8},
        {{.data_parallel = 2, .model_parallel = 2, .gradient_aggregation_group = 2}, 8},
        {{.data_parallel = 2, .pipeline_stage = 2, .micro_batch_num = 4, .recompute = true}, 4},
        {{.data_parallel = 4, .optimizer_shard = true}, 4}}) {
    RunConfig config;
    config.model.layers = 4, config.model.heads = 8, config.model.width = 16;
    config.global_batch_size = 16;
    set_parallel(config, parallel, devices);
    complete(config);
    Problems problems;
    find_problems(config, problems);
    EXPECT_TRUE(std::ranges::none_of(problems.list(), [](const Error& e) {
      return std::string(e.what()).find("parallel") != std::string::npos;
    }));
    RunConfig read = config_of(record_of(config), "here");
    complete(read);
    ParallelConfig expected = parallel.on(devices);
    // What shards parameters shards all; micro-batches are counted by the run.
    expected.shard_optimizer = expected.shard_gradients = expected.shard_parameters;
    expected.micro_batches = 1;
    // What is cheap is computed again in any case.
    if (!parallel.recompute) expected.recompute = Recompute::Elementwise;
    EXPECT_EQ(read.parallel, expected);
    EXPECT_EQ(read.micro_batches(), parallel.micro_batch_num);
    EXPECT_EQ(read.parallel.data(), parallel.data_parallel);
  }
  RunConfig config;
  config.global_batch_size = 6;
  try {
    set_parallel(config, {.data_parallel = 2, .micro_batch_num = 2}, 2);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "a batch of 6 cannot be cut into data_parallel 2 x micro_batch_num 2 equal parts; "
                 "nearest are 4 and 8");
  }
}

TEST(Config, DevicesThatAreLeftOverRepeat) {
  const auto problem_of = [](std::int64_t devices, std::int64_t data, std::int64_t tensor) {
    RunConfig config;
    config.model.layers = 2, config.model.heads = 8, config.model.width = 16;
    config.global_batch_size = 8;
    config.data = {"a"}, config.output = "b";
    config.parallel.devices = devices, config.parallel.tensor = tensor;
    config.data_parallel = data;
    complete(config);
    Problems problems;
    find_problems(config, problems);
    return problems.list().empty() ? std::string() : std::string(problems.list().front().what());
  };
  EXPECT_EQ(problem_of(8, 2, 2), "");
  EXPECT_EQ(
      problem_of(8, 4, 4),
      "data-parallel-size 4 x pipeline 1 x tensor 4 x context parallel size 1 makes 16 parts, "
      "but devices is 8; lower one of the sizes, or give devices 16");
  EXPECT_EQ(problem_of(8, 3, 1),
            "data-parallel-size 3 x pipeline 1 x tensor 1 x context parallel size 1 makes 3 parts, "
            "of which devices 8 is not a multiple; give devices 6 or 9");
  EXPECT_EQ(problem_of(2, 3, 1).find("data-parallel-size 3"), 0u);
}

TEST(Config, ConsequencesAreNoProblems) {
  struct Case {
    std::vector<Setting> flags;
    const char* problem;  // the one, as it begins
  };
  const Setting two = flag("devices", "2"), tensor = flag("tensor-parallel-size", "2"),
                llama = flag("family", "llama"), bert = flag("family", "bert");
  const Case cases[] = {
      {{flag("width", "0"), two, tensor}, "width is 0;"},
      {{flag("heads", "0"), two, tensor}, "heads is 0;"},
      {{flag("heads", "3"), two, tensor}, "heads 3 do not divide the width 128;"},
      {{flag("heads", "4"), flag("kv-heads", "3"), two, tensor}, "kv-heads 3 do not divide"},
      {{flag("context", "0"), two, flag("context-parallel-size", "2")}, "context is 0;"},
      {{bert, flag("context", "0"), flag("masked-positions", "8")}, "context is 0;"},
      {{flag("layers", "0"), two, flag("pipeline-parallel-size", "2")}, "layers is 0;"},
      {{flag("lr", "-1")}, "lr is -1;"},
      {{flag("lr", "-1"), flag("min-lr", "nan")}, "--min-lr is nan;"},
      {{flag("devices", "0"), tensor}, "--devices is 0;"},
      {{flag("devices", "7"), tensor, flag("global-batch-size", "2")}, "devices 7 is not a mul"},
      {{two, flag("zero-stage", "5"), flag("optimizer-shard-size", "2")}, "--zero-stage is 5;"},
      {{flag("remote-device", "disk"), flag("offload-folder", "x")}, "remote-device is 'disk';"},
      {{flag("recompute-granularity", "al"), flag("recompute-layers", "0")},
       "recompute-granularity is 'al';"},
      {{llama, flag("width", "30"), flag("heads", "4")}, "heads 4 do not divide the width 30;"},
  };
  for (const Case& c : cases) {
    Told told = tell({}, c.flags);
    complete(told.config);
    find_problems(told.config, told.problems);
    std::string all;
    for (const Error& problem : told.problems.list()) all += text(problem.what(), "\n");
    const std::size_t wanted = std::string_view(c.problem).starts_with("--min-lr") ? 2 : 1;
    EXPECT_EQ(told.problems.list().size(), wanted) << all;
    EXPECT_TRUE(all.starts_with(c.problem)) << all;
  }
}

/// What the table of fields says of schedules is what there is.
TEST(Config, NamesEverySchedule) {
  EXPECT_EQ(kind_text(*find_field("pipeline-schedule").field), join(schedule_names(), "|"));
}

TEST(Config, NothingIsDividedByAnImpossibleSize) {
  for (const char* name :
       {"pipeline-model-parallel-size", "tensor-model-parallel-size", "context-parallel-size"}) {
    Told told = tell({}, {flag(name, "0")});
    EXPECT_EQ(told.problems.list().size(), 1u) << name;
  }
  RunConfig config;
  config.parallel.pipeline = 0;
  complete(config);
  Problems problems;
  find_problems(config, problems);
  EXPECT_EQ(problems.list().size(), 1u);
}

TEST(Config, AProblemIsListedOnce) {
  Problems problems;
  problems.add("one");
  problems.gather([] { fail(Fault::Data, "one"); });
  problems.add("two");
  EXPECT_EQ(problems.list().size(), 2u);
}

/// Also where a layer on the way has added where it happened.
TEST(Config, ABugOfOursIsNoProblemOfTheUsers) {
  Problems problems;
  EXPECT_THROW(problems.gather([] {
    try {
      check(false, "a promise");
    } catch (const Error& error) {
      throw error.with("in the data");
    }
  }),
               Error);
  EXPECT_TRUE(problems.empty());
}

struct ChoiceCase {
  const char* why;
  CpuChoices machine;
  const char *max_isa, *pack;
  bool amx;
  CpuChoices choices;
  const char* refusal;  // empty: none
};
const ChoiceCase kChoiceCases[] = {
    {"as the machine", {Isa::Amx, true}, "auto", "auto", true, {Isa::Amx, true}, ""},
    {"a cap", {Isa::Amx, true}, "avx2", "auto", true, {Isa::Avx2, true}, ""},
    {"the machine's own level",
     {Isa::Avx512, false},
     "avx512",
     "auto",
     true,
     {Isa::Avx512, false},
     ""},
    {"no tiles", {Isa::Amx, false}, "auto", "auto", false, {Isa::Avx512Bf16, false}, ""},
    {"no tiles where there are none",
     {Isa::Avx2, false},
     "auto",
     "auto",
     false,
     {Isa::Avx2, false},
     ""},
    {"packing told", {Isa::Avx2, false}, "auto", "yes", true, {Isa::Avx2, true}, ""},
    {"no packing told", {Isa::Avx2, true}, "auto", "no", true, {Isa::Avx2, false}, ""},
    {"above the machine",
     {Isa::Avx2, true},
     "avx512-bf16",
     "auto",
     true,
     {},
     "max-isa avx512-bf16 is above avx2, the highest of this machine; give that or a lower one"},
    {"two flags",
     {Isa::Amx, true},
     "amx",
     "auto",
     false,
     {},
     "max-isa amx and no-amx disagree; give one"},
    {"no level",
     {Isa::Amx, true},
     "sse9",
     "auto",
     true,
     {},
     "max-isa 'sse9' is no instruction set; it can be avx2, avx512, avx512-bf16 or amx"},
    {"no word",
     {Isa::Amx, true},
     "auto",
     "maybe",
     true,
     {},
     "pack-weights is 'maybe'; it can be auto, yes or no"},
};

/// Of AMX, which a machine may have, and flags may forbid.
struct F32ProductsCase {
  const char* why;
  Isa machine;
  const char *products, *max_isa;
  bool amx;
  F32Products choice;
  const char* refusal = "";
};
constexpr F32Products kFma = F32Products::Fma, kAmx = F32Products::Amx;
const F32ProductsCase kF32ProductsCases[] = {
    {"as the machine", Isa::Amx, "auto", "auto", true, kAmx},
    {"as the machine, which has none", Isa::Avx2, "auto", "auto", true, kFma},
    {"below AMX there is one way", Isa::Amx, "auto", "avx512", true, kFma},
    {"without AMX, too", Isa::Amx, "auto", "auto", false, kFma},
    {"told", Isa::Amx, "amx", "auto", true, kAmx},
    {"told otherwise", Isa::Amx, "fma", "auto", true, kFma},
    {"multiply-adds are everywhere", Isa::Baseline, "fma", "auto", true, kFma},
    {"with either flag", Isa::Amx, "fma", "auto", false, kFma},
    {"no such word", Isa::Amx, "fast", "auto", true, kAmx,
     "f32-products is 'fast'; it can be auto, amx, fma"},
    {"a machine without", Isa::Avx2, "amx", "auto", true, kFma,
     "f32-products amx needs a processor with AMX, and avx2 is the highest instruction set of this "
     "machine; give auto or fma"},
    {"without AMX", Isa::Amx, "amx", "auto", false, kFma,
     "f32-products amx and no-amx disagree; give one"},
    {"a lower level", Isa::Amx, "amx", "avx512-bf16", true, kFma,
     "f32-products amx and max-isa avx512-bf16 disagree; give one"},
};

TEST(Config, F32ProductsOfAMachine) {
  for (const F32ProductsCase& c : kF32ProductsCases) {
    SCOPED_TRACE(c.why);
    RunConfig config;
    config.f32_products = c.products, config.max_isa = c.max_isa, config.amx = c.amx;
    try {
      const CpuChoices machine = CpuChoices{c.machine, true, kAmx}.at_most(c.machine);
      EXPECT_EQ(to_text(choices_of(config, machine).f32_products), to_text(c.choice));
      EXPECT_STREQ(c.refusal, "");
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), c.refusal);
    }
  }
}

TEST(Config, ChoicesOfAMachine) {
  for (const ChoiceCase& c : kChoiceCases) {
    SCOPED_TRACE(c.why);
    RunConfig config;
    config.max_isa = c.max_isa, config.pack_weights = c.pack, config.amx = c.amx;
    try {
      EXPECT_EQ(choices_of(config, c.machine), c.choices);
      EXPECT_STREQ(c.refusal, "");
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), c.refusal);
    }
  }
}

/// The record of a run says what its devices were made from, whatever was told.
TEST(Config, ChoicesAreRecorded) {
  RunConfig config;
  config.choices = {Isa::Avx512, true};
  complete(config);
  const std::map<std::string, std::string> record = record_of(config);
  EXPECT_EQ(record.at("max-isa"), "avx512");
  EXPECT_EQ(record.at("pack-weights"), "yes");
  EXPECT_EQ(record.at("amx"), "false");
  EXPECT_EQ(record.at("f32-products"), "fma");
  config.choices = {Isa::Amx, true, kAmx};
  complete(config);
  EXPECT_EQ(record_of(config).at("f32-products"), "amx");
}

}  // namespace
}  // namespace tessera
