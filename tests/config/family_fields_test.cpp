/// Which fields a family reads: what it says is what changes its step, and who gives another field
/// hears of it. Families of a program's own.

#include "tessera/config/family_fields.h"

#include <gtest/gtest.h>

#include "tessera/ir/print.h"
#include "tessera/models/causal_lm.h"
#include "tessera/train/step.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct OtherValue {
  std::string_view field;
  const char* value;  // another one than that of tiny()
};
constexpr OtherValue kOtherValues[] = {
    {"layers", "3"},
    {"num-experts", "8"},
    {"moe-layer-freq", "2"},
    {"moe-ffn-hidden-size", "44"},
    {"q-lora-rank", "5"},
    {"kv-lora-rank", "7"},
    {"qk-head-dim", "10"},
    {"qk-pos-emb-head-dim", "2"},
    {"v-head-dim", "5"},
    {"moe-router-topk", "1"},
    {"moe-router-score-function", "softmax"},
    {"moe-router-pre-softmax", "true"},
    {"moe-router-topk-scaling-factor", "3"},
    {"moe-router-num-groups", "1"},
    {"moe-router-group-topk", "2"},
    {"moe-router-enable-expert-bias", "false"},
    {"moe-router-bias-update-rate", "0.5"},
    {"moe-input-jitter-eps", "0.25"},
    {"moe-expert-capacity-factor", "0.5"},
    {"moe-min-capacity", "13"},
    {"moe-token-drop-policy", "choice"},
    {"moe-aux-loss-samples", "4"},
    {"moe-use-residual", "false"},
    {"moe-shared-expert-intermediate-size", "6"},
    {"moe-shared-expert-gate", "true"},
    {"moe-aux-loss-coeff", "0.5"},
    {"moe-z-loss-coeff", "0.5"},
    {"decoder-layers", "3"},
    {"decoder-heads", "2"},
    {"decoder-ffn-width", "44"},
    {"attention-bias", "true"},
    {"ffn-bias", "true"},
    {"distance-kinds", "16"},
    {"far-distance", "40"},
    {"logit-scale", "0.5"},
    {"heads", "2"},
    {"kv-heads", "1"},
    {"width", "32"},
    {"embedding-width", "28"},
    {"head-width", "8"},
    {"ffn-width", "40"},
    {"context", "12"},
    {"positions", "40"},
    {"source-context", "7"},
    {"vocab-size", "23"},
    {"special-tokens", "0,1,2"},
    {"masked-positions", "2"},
    {"generator-width", "4"},
    {"dropout", "0.3"},
    {"attention-dropout", "0.35"},
    {"reset-position-ids", "true"},
    {"reset-attention-mask", "true"},
    {"bias", "false"},
    {"tied-head", "false"},
    {"shared-embedding", "true"},
    {"scale-embedding", "true"},
    {"sinusoidal-positions", "true"},
    {"post-norm", "true"},
    {"activation", "relu"},
    {"image-size", "12"},
    {"patch-size", "2"},
    {"image-channels", "1"},
    {"layer-scale", "0.1"},
    {"distilled", "true"},
    {"classes", "4"},
    {"classifier-dropout", "0.25"},
    {"pooling", "mean"},
    {"texts", "3"},
    {"similarity-scale", "10"},
    {"sentence-pooling", "cls"},
    {"doc-stride", "1"},
    {"max-answer-length", "3"},
    {"dpo-beta", "0.2"},
    {"dpo-label-smoothing", "0.1"},
    {"norm-eps", "0.001"},
    {"rope-base", "500"},
    {"local-rope-base", "700"},
    {"rotary-share", "0.5"},
    {"rope-scaling", "rope_type=linear,factor=2"},
    {"one-norm", "true"},
    {"residual-attention", "true"},
    {"window", "3"},
    {"global-every", "2"},
    {"query-scalar", "9"},
    {"score-cap", "3"},
    {"logit-cap", "2"},
    {"init-std", "0.05"},
};

/// All that depends on a configuration: programs and first values, samples, names of layers.
std::string all_of(const ModelConfig& config) {
  OptimizerConfig optimizer;
  const Task task = task_of(config);
  std::string out = text(to_text(train_step(task, optimizer, 4)), join(layer_blocks(config)));
  for (const TaskInput& input : task.inputs) out += text(input.name, input.sample, input.values);
  return out;
}

void expect_fields_of_a_model(std::span<const ReadField> reads) {
  for (const ReadField& read : reads) {
    const Field* field = find_field(read.name).field;
    ASSERT_NE(field, nullptr) << read.name;
    EXPECT_EQ(field->group, FieldGroup::Model) << read.name;
  }
}

TEST(FamilyFields, AreThoseThatChangeTheStep) {
  for (const ModelFamily* family : model_families()) {
    for (const FamilyTask& task : family->tasks) {
      for (const Field& field : fields()) {
        if (field.group != FieldGroup::Model || field.name == "family" || field.name == "task")
          continue;
        SCOPED_TRACE(text(family->name, " ", task.name, " ", field.name));
        const auto other = std::ranges::find(kOtherValues, field.name, &OtherValue::field);
        ASSERT_NE(other, std::end(kOtherValues)) << "give it another value in this test";
        RunConfig config, changed;
        config.model = changed.model = with_routing(tiny(std::string(family->name)));
        config.model.task = changed.model.task = task.name;
        set_text(field, changed, other->value, field.name);
        ASSERT_NE(get_text(field, changed), get_text(field, config));
        // They change samples and predictions alone: tests/data/question_rows_test.cpp and
        // tests/models/judges_test.cpp.
        if (field.name == "doc-stride" || field.name == "max-answer-length") {
          EXPECT_EQ(reads_field(config.model, field.name), task.name == kQuestionAnswering);
          continue;
        }
        const bool reads = reads_field(config.model, field.name);
        // Where positions are sines, it bounds samples alone.
        const bool bounds = field.name == "positions" && reads;
        EXPECT_EQ(reads, all_of(changed.model) != all_of(config.model) || bounds);
      }
      expect_fields_of_a_model(task.reads);
    }
    expect_fields_of_a_model(family->reads);
  }
}

struct GivenFields {
  RunConfig config;
  std::vector<std::string> problems;
};

GivenFields told(const std::vector<Setting>& file, const std::vector<Setting>& flags,
                 const OwnFamilies& own = {}) {
  Problems problems;
  std::vector<std::string> notices;
  GivenFields out{configure(file, flags, problems, notices, own), {}};
  complete(out.config);
  find_problems(out.config, problems);
  for (const Error& problem : problems.list()) out.problems.emplace_back(problem.what());
  return out;
}

Setting by_flag(const std::string& name, const std::string& value) {
  return {name, {value}, "--" + name};
}
Setting in_file(const std::string& name, const std::string& value) {
  return {name, {value}, name + " in run.toml:3"};
}

/// "a, b or c": the families that read a field with one of their tasks at least, or those that do
/// not.
std::string families_that(bool read, std::string_view field, const OwnFamilies& own = {}) {
  std::vector<std::string> names;
  for (const ModelFamily* family : all_families(own)) {
    if (reads_field(*family, field) == read) names.emplace_back(family->name);
  }
  std::string out = join(names);
  if (const std::size_t last = out.rfind(", "); last != std::string::npos)
    out.replace(last, 2, " or ");
  return out;
}

TEST(FamilyFields, OneThatIsNotReadIsNamedWithItsReaders) {
  struct Case {
    const char* why;
    std::vector<Setting> file, flags;
    std::vector<std::string> problems;
  };
  std::vector<std::string> families;
  for (const ModelFamily* family : model_families()) families.emplace_back(family->name);
  const Case cases[] = {
      {"a flag",
       {},
       {by_flag("rope-base", "500")},
       {text("--rope-base 500 does nothing with family gpt2; leave it out, or give family ",
             families_that(true, "rope-base"))}},
      {"of a preset's family, even with the value that it has",
       {},
       {by_flag("preset", "bert-tiny"), by_flag("bias", "true")},
       {text("--bias does nothing with family bert; leave it out, or give family ",
             families_that(true, "bias"))}},
      {"by another name",
       {},
       {by_flag("family", "transformer"), by_flag("max-predictions-per-seq", "3")},
       {text("--max-predictions-per-seq 3 does nothing with family transformer; leave it out, or "
             "give family ",
             families_that(true, "masked-positions"))}},
      {"a file",
       {in_file("rope-base", "500")},
       {},
       {text("rope-base 500 in run.toml:3 does nothing with family gpt2; leave it out, or give "
             "family ",
             families_that(true, "rope-base"))}},
      {"files that runs write name every field", {in_file("rope-base", "10000")}, {}, {}},
      {"and fields that the family was published with",
       {in_file("family", "llama"), in_file("bias", "false")},
       {},
       {}},
      {"a flag for another family than the file's",
       {in_file("family", "llama"), in_file("rope-base", "500")},
       {by_flag("family", "gpt2")},
       {text("rope-base 500 in run.toml:3 does nothing with family gpt2; leave it out, or give "
             "family ",
             families_that(true, "rope-base"))}},
      {"what the file's preset begins with, for another family and optimizer",
       {in_file("preset", "nanogpt-shakespeare-cpu"), in_file("bias", "false"),
        in_file("adam-beta2", "0.99")},
       {by_flag("family", "llama"), by_flag("optimizer", "sgd"), by_flag("sample-every", "0")},
       {}},
      {"an option of another optimizer",
       {},
       {by_flag("nesterov", "true")},
       {"--nesterov does nothing with optimizer adamw; leave it out, or give optimizer sgd"}},
      {"of several others, in a file",
       {in_file("adam-eps", "1e-5"), in_file("sgd-momentum", "0.9")},
       {by_flag("optimizer", "sgd")},
       {"adam-eps 1e-5 in run.toml:3 does nothing with optimizer sgd; leave it out, or give "
        "optimizer adamw, adam, lamb or adam-weight-decay"}},
      {"an optimizer that is refused has no options of its own",
       {},
       {by_flag("optimizer", "adamax"), by_flag("nesterov", "true")},
       {text("--optimizer is 'adamax'; known are ", join(kOptimizerNames))}},
      {"words of other messages silence nothing: a family that is refused, and another fault",
       {},
       {by_flag("family", "q"), by_flag("lr", "-1"), by_flag("bias", "true")},
       {text("unknown model family 'q'; known are ", join(families)),
        "lr is -1; it must be at least 0 and at most 1e+30"}},
      {"data parallel devices are not the field data, nor steps a sentence's",
       {},
       {by_flag("devices", "2"), by_flag("steps", "x"), by_flag("global-batch-size", "1")},
       {"--steps is 'x'; it must be a whole number, like 100",
        "global-batch-size 1 is less than the 2 data parallel devices, some of which would have no "
        "sample; give at least 2, or fewer devices"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    EXPECT_EQ(told(c.file, c.flags).problems, c.problems);
  }
}

/// So that records of equal models are equal.
TEST(FamilyFields, WhatIsNotReadIsWhatWasPublished) {
  const GivenFields c =
      told({}, {by_flag("preset", "nanogpt-shakespeare-cpu"), by_flag("family", "bert")});
  EXPECT_EQ(c.problems,
            std::vector<std::string>{"sample-every 500 does nothing with family bert, which writes "
                                     "no text; give sample-every 0"});
  EXPECT_TRUE(c.config.model.bias) << "the preset's false is for a family that reads it";
}

std::string help_for(std::string_view field, const OwnFamilies& own = {}) {
  return families_text(*find_field(field).field, own);
}

Value no_logits(const ModelConfig&, Value ids, const Pass&) { return ids; }
constexpr ReadField kOwnReads[] = {{"layers", "of two kinds"}, {"rope-base"}, {"context"}};
constexpr FamilyTask kOwnTasks[] = {
    {kCausalLm, [](const ModelConfig& config) { return causal_lm(config, no_logits); }}};

constexpr ModelFamily kOwnFamily = {.name = "own",
                                    .doc = "of a test",
                                    .reads = kOwnReads,
                                    .tasks = kOwnTasks,
                                    .publish = [](ModelConfig& config) { config.rope_base = 7; }};

TEST(FamilyFields, HelpSaysWhichFamiliesReadThem) {
  EXPECT_EQ(help_for("image-size"), ", for vision models");
  EXPECT_EQ(help_for("heads"), "");
  EXPECT_EQ(help_for("context"), ", not for vision models");
  EXPECT_EQ(help_for("decoder-layers"), ", for encoder-decoders");
  EXPECT_EQ(help_for("bias"), ", for " + families_that(true, "bias"));
  EXPECT_EQ(help_for("width"), "");
  EXPECT_EQ(help_for("nesterov"), ", with --optimizer sgd");
  EXPECT_EQ(help_for("adam-eps"), ", with --optimizer adamw, adam, lamb or adam-weight-decay");
  EXPECT_EQ(help_for("clip-grad"), "");
  EXPECT_NE(
      help_for("ffn-width")
          .find("qwen2, qwen2_moe, qwen3 or qwen3_moe 0 is 8/3 x width, up to a multiple of 4"),
      std::string::npos);
  EXPECT_TRUE(
      help_for("layers", {&kOwnFamily}).ends_with(" those of the encoder; of own of two kinds"));
  EXPECT_EQ(help_for("steps"), "");
  const std::string families = help_for("family", {&kOwnFamily});
  EXPECT_NE(families.find(", llama, marian, "), std::string::npos) << families;
  EXPECT_NE(families.find(", own (of a test; without a preset rope-base 7); "), std::string::npos)
      << families;
  EXPECT_EQ(published_text(find_model("llama")), "tied-head false");
}

TEST(OwnFamily, IsNamedAndRecordedLikeTheLibrarys) {
  const OwnFamilies own = {&kOwnFamily};
  const GivenFields c = told({}, {by_flag("family", "own"), by_flag("heads", "2")}, own);
  EXPECT_EQ(c.config.model.family, kOwnFamily);
  EXPECT_EQ(c.config.model.rope_base, 7);
  EXPECT_EQ(c.problems, std::vector<std::string>{text(
                            "--heads 2 does nothing with family own; leave it out, or give family ",
                            families_that(true, "heads"))});
  const auto record = record_of(c.config);
  EXPECT_EQ(record.at("family"), "own");
  EXPECT_EQ(config_of(record, "here", own).model.family, kOwnFamily);
  try {
    config_of(record, "here");
    FAIL();
  } catch (const Error& error) {
    std::vector<std::string_view> names;
    for (const ModelFamily* family : model_families()) names.push_back(family->name);
    EXPECT_EQ(std::string(error.what()), text("here: unknown model family 'own'; known are ",
                                              join(names), " (in its configuration)"));
  }
}

TEST(OwnFamily, ReadsFieldsThatThereAre) {
  constexpr ReadField kMisspelt[] = {{"layers"}, {"ffn_width"}, {"steps"}};
  ModelFamily family = kOwnFamily;
  family.reads = kMisspelt;
  EXPECT_EQ(told({}, {by_flag("family", "own")}, {&family}).problems,
            (std::vector<std::string>{
                "family own reads 'ffn_width', which is not a model field; use ffn-width",
                "family own reads 'steps', which is not a model field; use steps"}));
  EXPECT_THROW(find_model("gpt2", {nullptr}), Error);
}

TEST(OwnFamily, SaysOfTextsWhatItsTaskDoes) {
  constexpr TaskKind kSilent{"silent", "the next token, of which nothing is written"};
  const FamilyTask tasks[] = {{kSilent, kOwnTasks[0].make}};
  ModelFamily family = kOwnFamily;
  family.tasks = tasks;
  ModelConfig config = tiny("gpt2");
  config.family = family, config.task = "silent";
  try {
    task_of(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "task silent of family own: TaskKind::writes is not what Task::text says; set it "
                 "to Nothing, Texts or TextsFromSources, as the task writes none, or from a "
                 "prompt, or from a source");
  }
}

TEST(OwnFamily, NeedsANameOfItsOwn) {
  ModelFamily twin = kOwnFamily;
  twin.name = "gpt2";
  try {
    find_model("gpt2", {&twin});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "two model families are called 'gpt2'; rename yours");
  }
}

}  // namespace
}  // namespace tessera
