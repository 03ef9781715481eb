/// Families: parameters by name and shape, configurations that cannot be built.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/safetensors.h"
#include "tessera/ir/strategy.h"
#include "tessera/models/layer.h"
#include "tessera/models/translation.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/interpret.h"

namespace tessera {

extern const TranslationModel kTransformerModel;

namespace {

std::vector<std::string> parameters_of(const ModelConfig& config) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {2, 4}, {}});
  const Value logits = task_of(config).text->logits(ids, {});
  EXPECT_EQ(logits.shape(), (Shape{2, 4, config.vocabulary}));
  std::vector<std::string> out;
  for (const State& state : builder.so_far().states()) {
    out.push_back(text(state.path, " ", builder.so_far().type(state.value).shape));
  }
  return out;
}

TEST(Models, GptParameters) {
  ModelConfig c;
  c.layers = 1, c.heads = 2, c.width = 8, c.context = 4, c.vocabulary = 11;
  const std::vector<std::string> expected = {"embed.token.weight [11,8]",
                                             "embed.position.weight [4,8]",
                                             "layers.0.norm1.weight [8]",
                                             "layers.0.norm1.bias [8]",
                                             "layers.0.attn.qkv.weight [24,8]",
                                             "layers.0.attn.qkv.bias [24]",
                                             "layers.0.attn.proj.weight [8,8]",
                                             "layers.0.attn.proj.bias [8]",
                                             "layers.0.norm2.weight [8]",
                                             "layers.0.norm2.bias [8]",
                                             "layers.0.mlp.up.weight [32,8]",
                                             "layers.0.mlp.up.bias [32]",
                                             "layers.0.mlp.down.weight [8,32]",
                                             "layers.0.mlp.down.bias [8]",
                                             "norm.weight [8]",
                                             "norm.bias [8]"};
  EXPECT_EQ(parameters_of(c), expected);
}

TEST(Models, LlamaParameters) {
  ModelConfig c;
  c.family = "llama", c.layers = 1, c.heads = 4, c.kv_heads = 2, c.width = 8, c.ffn_width = 12,
  c.context = 4;
  c.vocabulary = 11, c.tied_head = false;
  const std::vector<std::string> expected = {"embed.token.weight [11,8]",
                                             "layers.0.norm1.weight [8]",
                                             "layers.0.attn.qkv.weight [16,8]",
                                             "layers.0.attn.proj.weight [8,8]",
                                             "layers.0.norm2.weight [8]",
                                             "layers.0.mlp.gate.weight [12,8]",
                                             "layers.0.mlp.up.weight [12,8]",
                                             "layers.0.mlp.down.weight [8,12]",
                                             "norm.weight [8]",
                                             "head.weight [11,8]"};
  EXPECT_EQ(parameters_of(c), expected);
}

/// Parameters of a task by path, of samples of two.
std::map<std::string, Shape> shapes_of(const Task& task) {
  Builder builder;
  task.measure(inputs_of(task, builder, 2), {});
  std::map<std::string, Shape> out;
  for (const State& state : builder.so_far().states())
    out.emplace(state.path, builder.so_far().type(state.value).shape);
  return out;
}

TEST(Models, BertParameters) {
  ModelConfig c;
  c.family = "bert", c.layers = 1, c.heads = 2, c.width = 8, c.context = 6, c.vocabulary = 11;
  const std::map<std::string, Shape> expected = {{"embed.token.weight", {11, 8}},
                                                 {"embed.type.weight", {2, 8}},
                                                 {"embed.position.weight", {6, 8}},
                                                 {"embed.norm.weight", {8}},
                                                 {"embed.norm.bias", {8}},
                                                 {"layers.0.attn.qkv.weight", {24, 8}},
                                                 {"layers.0.attn.qkv.bias", {24}},
                                                 {"layers.0.attn.proj.weight", {8, 8}},
                                                 {"layers.0.attn.proj.bias", {8}},
                                                 {"layers.0.norm1.weight", {8}},
                                                 {"layers.0.norm1.bias", {8}},
                                                 {"layers.0.mlp.up.weight", {32, 8}},
                                                 {"layers.0.mlp.up.bias", {32}},
                                                 {"layers.0.mlp.down.weight", {8, 32}},
                                                 {"layers.0.mlp.down.bias", {8}},
                                                 {"layers.0.norm2.weight", {8}},
                                                 {"layers.0.norm2.bias", {8}},
                                                 {"mlm.dense.weight", {8, 8}},
                                                 {"mlm.dense.bias", {8}},
                                                 {"mlm.norm.weight", {8}},
                                                 {"mlm.norm.bias", {8}},
                                                 {"mlm.bias", {11}},
                                                 {"pooler.weight", {8, 8}},
                                                 {"pooler.bias", {8}},
                                                 {"nsp.weight", {2, 8}},
                                                 {"nsp.bias", {2}}};
  EXPECT_EQ(shapes_of(task_of(c)), expected);
  c.masked_positions = 2;
  EXPECT_EQ(shapes_of(task_of(c)), expected) << "the weights of the one fit the other";
}

TEST(Models, AlbertHasTheWeightsOfOneLayer) {
  ModelConfig c = published("albert"), bert = published("bert");
  EXPECT_EQ(c.embedding_width, 128);
  for (ModelConfig* config : {&c, &bert}) {
    config->layers = 1, config->heads = 2, config->width = 8, config->context = 6;
    config->vocabulary = 11;
  }
  c.layers = 3, c.embedding_width = 5;
  std::map<std::string, Shape> expected = shapes_of(task_of(bert));
  expected["embed.token.weight"] = {11, 5};
  expected["embed.type.weight"] = {2, 5};
  expected["embed.position.weight"] = {6, 5};
  expected["embed.norm.weight"] = expected["embed.norm.bias"] = {5};
  expected["embed.project.weight"] = {8, 5};
  expected["embed.project.bias"] = {8};
  expected["mlm.dense.weight"] = {5, 8};
  expected["mlm.dense.bias"] = expected["mlm.norm.weight"] = expected["mlm.norm.bias"] = {5};
  expected["sop.weight"] = expected.extract("nsp.weight").mapped();
  expected["sop.bias"] = expected.extract("nsp.bias").mapped();
  EXPECT_EQ(shapes_of(task_of(c)), expected);
  EXPECT_EQ(layer_blocks(c).size(), 3u);
  c.embedding_width = 0;
  EXPECT_EQ(shapes_of(task_of(c)).at("embed.project.weight"), (Shape{8, 8}));
}

TEST(Models, RobertaHasNoSecondPart) {
  ModelConfig c = published("roberta"), bert = published("bert");
  EXPECT_EQ(c.norm_eps, 1e-5);
  for (ModelConfig* config : {&c, &bert}) {
    config->layers = 1, config->heads = 2, config->width = 8, config->context = 6;
    config->vocabulary = 11;
  }
  std::map<std::string, Shape> expected = shapes_of(task_of(bert));
  for (const char* head : {"pooler", "nsp"}) {
    for (const char* kind : {".weight", ".bias"}) expected.erase(text(head, kind));
  }
  expected["embed.type.weight"] = {1, 8};
  expected["embed.position.weight"] = {8, 8};
  EXPECT_EQ(shapes_of(task_of(c)), expected);
}

/// A cut that names no parameter would split nothing, and nobody would see it.
TEST(Models, WhatFamiliesSplitIsThere) {
  for (const ModelFamily* const known : model_families()) {
    const ModelFamily& family = *known;
    ModelConfig c = published(family);
    c.layers = 1, c.context = 8;
    const std::map<std::string, Shape> shapes = shapes_of(task_of(c));
    for (const TensorCut& cut : family.cuts) {
      EXPECT_TRUE(std::ranges::any_of(shapes,
                                      [&](const auto& parameter) {
                                        return matches(cut.paths, parameter.first) &&
                                               parameter.second.ndim() == cut.ndim;
                                      }))
          << family.name << " " << cut.paths;
    }
  }
}

std::vector<std::string> transformer_parameters(const ModelConfig& c) {
  Builder builder;
  const Value source = builder.batch("source", {DType::I32, {2, c.source()}, {}}),
              ids = builder.batch("ids", {DType::I32, {2, c.context}, {}});
  EXPECT_EQ(kTransformerModel.logits(c, source, ids, {}).shape(),
            (Shape{2, c.context, c.vocabulary}));
  std::vector<std::string> out;
  for (const State& state : builder.so_far().states())
    out.push_back(text(state.path, " ", builder.so_far().type(state.value).shape));
  return out;
}

TEST(Models, TransformerParameters) {
  ModelConfig c;
  c.family = "transformer", c.layers = 1, c.decoder_layers = 2, c.heads = 2, c.width = 8;
  c.context = 4, c.source_context = 5, c.vocabulary = 11, c.ffn_width = 12, c.bias = false;
  std::vector<std::string> expected = {"embed.token.weight [11,8]",
                                       "embed.position.weight [5,8]",
                                       "encoder.layers.0.norm1.weight [8]",
                                       "encoder.layers.0.attn.qkv.weight [24,8]",
                                       "encoder.layers.0.attn.proj.weight [8,8]",
                                       "encoder.layers.0.norm2.weight [8]",
                                       "encoder.layers.0.mlp.up.weight [12,8]",
                                       "encoder.layers.0.mlp.down.weight [8,12]",
                                       "encoder.norm.weight [8]",
                                       "embed_target.token.weight [11,8]",
                                       "embed_target.position.weight [4,8]"};
  for (const char* layer : {"decoder.layers.0.", "decoder.layers.1."}) {
    for (const char* of : {"norm1.weight [8]", "attn.qkv.weight [24,8]", "attn.proj.weight [8,8]",
                           "norm_cross.weight [8]", "cross.q.weight [8,8]",
                           "cross.kv.weight [16,8]", "cross.proj.weight [8,8]", "norm2.weight [8]",
                           "mlp.up.weight [12,8]", "mlp.down.weight [8,12]"})
      expected.push_back(text(layer, of));
  }
  expected.push_back("decoder.norm.weight [8]");
  EXPECT_EQ(transformer_parameters(c), expected);
  c.shared_embedding = c.sinusoidal = true, c.tied_head = false, c.decoder_layers = 0;
  const std::vector<std::string> other = transformer_parameters(c);
  EXPECT_EQ(other.front(), "embed.token.weight [11,8]");
  EXPECT_EQ(other.back(), "head.weight [11,8]");
  EXPECT_EQ(other.size(), 1u + 6 + 1 + 10 + 1 + 1);
}

TEST(Models, LayersAreNumberedThroughAllStacks) {
  ModelConfig c;
  c.layers = 2, c.decoder_layers = 1;
  EXPECT_EQ(layer_blocks(c), (std::vector<std::string>{"layers.0", "layers.1"}));
  c.family = "transformer";
  EXPECT_EQ(layer_blocks(c),
            (std::vector<std::string>{"encoder.layers.0", "encoder.layers.1", "decoder.layers.0"}));
  EXPECT_EQ(layer_count(c), 3);
  c.decoder_layers = 0;
  EXPECT_EQ(layer_count(c), 4);
}

TEST(Models, TransformerProblems) {
  ModelConfig c;
  c.family = "transformer", c.activation = "swish", c.vocabulary = 3;
  c.source_context = -1, c.decoder_layers = kMaxLayers + 1;
  c.sinusoidal = true, c.width = 5, c.heads = 5;
  const std::vector<std::string> expected = {
      "source-context is -1; it must be 1 or more",
      "decoder-layers is 100001; it must be at most 100000",
      "vocabulary is 3, and 3 tokens of family transformer are special; it must be larger",
      "activation is 'swish'; of family transformer it can be gelu, relu",
      "sines as positions need an even width; it is 5"};
  EXPECT_EQ(problems(c).texts(), expected);
}

TEST(Models, SpecialTokensMayBeNamed) {
  ModelConfig c;
  c.family = "transformer", c.vocabulary = 20;
  EXPECT_EQ(to_text(translation_tokens(c)), "17,18,19") << "the last ones";
  for (const char* named : {"0,2,1", "1,2,2,0"}) {
    c.special_tokens = named;
    EXPECT_TRUE(problems(c).empty());
    EXPECT_EQ(to_text(translation_tokens(c)), named);
  }
  const auto said = [&](const char* tokens) {
    c.special_tokens = tokens;
    return join(problems(c).texts(), "; ");
  };
  for (const char* tokens : {"0,1", "0,1,2,3,4", "0,-1,2", "0,a,2", "0, 1,2", "0,1,99999999999"})
    EXPECT_EQ(said(tokens),
              text("special-tokens is '", tokens,
                   "'; give the ids of padding, start and end, like 0,2,1, or a fourth one for "
                   "what stands before every text, like 1,2,2,0"));
  EXPECT_EQ(said("0,1,20"), "special-tokens is 0,1,20 and the vocabulary 20; give ids below it");
  EXPECT_EQ(said("1,0,1"), "special-tokens is 1,0,1; the end must be another one than padding");
  EXPECT_EQ(said("1,2,2,1"),
            "special-tokens is 1,2,2,1; the end, and what stands before every text, must be "
            "another one than padding");
  EXPECT_EQ(said("0,0,1"),
            "special-tokens is 0,0,1; of family transformer the start must be "
            "another one than padding, which no token sees");
  c.family = "t5", c.activation = "relu";
  EXPECT_EQ(said("0,0,1"), "");
}

/// The kinds of all distances up to 200, by another program: golden/t5.safetensors.
TEST(Models, RelativeBiasesAreOfT5sKindsOfDistances) {
  const HostTensor kinds = SafetensorsFile(repo_file("tests/golden/t5.safetensors")).load("kinds");
  const std::int64_t keys = kinds.shape()[1], heads = 2;
  for (const Distances distances : {Distances::Both, Distances::Before}) {
    Builder builder;
    const Value first = builder.constant(static_cast<double>(keys / 2), DType::I32);
    builder.output(Output::Kind::Metric, "y",
                   relative_bias(builder, "relative", heads, 1, keys, distances, {}, first));
    Bindings in;
    HostTensor& table =
        in.states.emplace("relative.weight", HostTensor(DType::F32, {DistanceKinds().count, heads}))
            .first->second;
    for (std::int64_t i = 0; i < table.numel(); ++i) table.set(i, static_cast<double>(i));
    const HostTensor y = interpret(builder.finish(), in)[0];
    ASSERT_EQ(y.shape(), (Shape{heads, 1, keys}));
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const double kind = kinds.at((distances == Distances::Both ? 0 : keys) + i % keys);
      EXPECT_EQ(y.at(i), kind * heads + static_cast<double>(i / keys)) << i % keys - keys / 2;
    }
  }
}

TEST(Models, EncoderDecoderProblems) {
  ModelConfig c = published("t5");
  c.activation = "gelu", c.heads = 3, c.width = 128, c.head_width = 5;
  EXPECT_EQ(
      problems(c).texts(),
      (std::vector<std::string>{"activation is 'gelu'; of family t5 it can be gated-gelu, relu"}))
      << "heads of a width of their own divide nothing";
  c = published("bart");
  c.positions = 64, c.source_context = 65;
  EXPECT_EQ(
      problems(c).texts(),
      (std::vector<std::string>{"source-context is 65 and there are 64 positions, of a source as "
                                "of a target; give positions of at least 65"}));
}

TEST(Models, ProblemsAreSentences) {
  ModelConfig c;
  c.heads = 3, c.width = 128, c.dropout = 1.5, c.layers = 0;
  const std::vector<std::string> expected = {
      "layers is 0; it must be 1 or more",
      "heads 3 do not divide the width 128; nearest widths are 126 and 129",
      "dropout is 1.5; it must be at least 0 and less than 1"};
  EXPECT_EQ(problems(c).texts(), expected);
  EXPECT_TRUE(problems(ModelConfig()).empty());
}

/// Each field in turn so large that a product of sizes is above 2^62 bytes, up to where 64 bits
/// end.
TEST(Models, AModelThatCannotExistIsRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  using Field = std::int64_t ModelConfig::*;
  for (const auto& [name, field] : {std::pair<std::string, Field>("layers", &ModelConfig::layers),
                                    {"heads", &ModelConfig::heads},
                                    {"kv-heads", &ModelConfig::kv_heads},
                                    {"width", &ModelConfig::width},
                                    {"embedding-width", &ModelConfig::embedding_width},
                                    {"ffn-width", &ModelConfig::ffn_width},
                                    {"context", &ModelConfig::context},
                                    {"source-context", &ModelConfig::source_context},
                                    {"decoder-layers", &ModelConfig::decoder_layers},
                                    {"vocabulary", &ModelConfig::vocabulary}}) {
    for (const std::int64_t value : {kMost, kMost - 3, kMost / 4, kMaxFieldSize + 1}) {
      ModelConfig c;
      c.*field = value;
      const std::vector<std::string> found = problems(c).texts();
      ASSERT_FALSE(found.empty()) << name << " " << value;
      EXPECT_NE(found[0].find(name), std::string::npos) << found[0];
      for (const std::string& problem : found)
        EXPECT_EQ(problem.find(" -"), std::string::npos) << "wrapped: " << problem;
    }
  }
  ModelConfig c;
  c.layers = kMaxLayers;
  EXPECT_TRUE(problems(c).empty());
  c.layers = kMaxLayers + 1;
  EXPECT_EQ(problems(c).texts(),
            std::vector<std::string>{"layers is 100001; it must be at most 100000"});
  EXPECT_THROW(check_step_sizes(ModelConfig(), kMost / 1000), Error);
  for (const char* holds_scores : {"t5", "mpnet", "deberta-v2"}) {
    c = published(holds_scores);
    c.context = kMaxContext;
    EXPECT_NE(join(problems(c).texts()).find("scores of attention, which are held whole"),
              std::string::npos)
        << holds_scores;
  }
  c = published("t5");
  c.width = 4, c.heads = 1'000'000, c.head_width = 1'000'000, c.context = 1'000'000;
  EXPECT_NE(join(problems(c).texts()).find("bytes of queries, keys and values"), std::string::npos);
}

TEST(Models, PicturesThatCannotExistAreRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [size, patch, channels] : {std::array{kMost, kMost, std::int64_t{1}},
                                              {kMost, 1, 1},
                                              {10'000'000'000, 1, 1},
                                              {31'623, 1, 1},
                                              {31'623, 31'623, 1},
                                              {16, 16, kMost},
                                              {16, 16, 3'906'251}}) {
    ModelConfig c = published("vit");
    c.image_size = size, c.patch_size = patch, c.image_channels = channels;
    complete(c);
    EXPECT_EQ(problems(c).texts(),
              std::vector<std::string>{text(
                  "image-size ", size, ", patch-size ", patch, " and image-channels ", channels,
                  " make more than 1000000000 patches, or numbers in a patch; give "
                  "smaller pictures")});
  }
  ModelConfig c = published("vit");
  c.classes = 1'000'000'001;
  complete(c);
  EXPECT_EQ(problems(c).texts(),
            std::vector<std::string>{"classes is 1000000001; it must be from 1 to 1000000000, or 0 "
                                     "for as many as the data has"});
}

TEST(Models, AWindowAsWideAsTheSamplesIsNone) {
  ModelConfig c = published("gemma3_text");
  c.context = 16;
  const TransformerLayer whole = layer_of(c);
  for (const std::int64_t window : {0, 15, 16, 17}) {
    c.window = window;
    EXPECT_EQ(layer_at(whole, c, 0).window, window < 16 ? window : 0);
    EXPECT_EQ(layer_at(whole, c, 0).rope.base, window > 0 ? c.local_rope_base : c.rope_base);
    EXPECT_EQ(layer_at(whole, c, 5).window, 0) << "each sixth layer sees all";
    EXPECT_EQ(layer_at(whole, c, 5).rope.base, c.rope_base);
  }
  c.query_scalar = -4;
  EXPECT_EQ(problems(c).texts(),
            std::vector<std::string>{"query-scalar is -4; it must not be negative"});
}

TEST(Models, AnUnknownFamilyNamesTheKnown) {
  std::vector<std::string> known;
  for (const ModelFamily* const family : model_families()) known.emplace_back(family->name);
  EXPECT_TRUE(std::ranges::is_sorted(known));
  try {
    find_model("gpt3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), text("unknown model family 'gpt3'; known are ", join(known)));
  }
}

}  // namespace
}  // namespace tessera
