#pragma once
/// Tiny training steps with random inputs, for tests that run one graph in several ways.

#include <cmath>

#include "tessera/models/family.h"
#include "tessera/ops/interpret.h"
#include "tessera/train/step.h"

namespace tessera {

/// The longest name of a family that begins the name of a variant.
inline std::string family_of_variant(const std::string& variant) {
  std::string_view out;
  for (const ModelFamily* family : model_families()) {
    const std::size_t end = family->name.size();
    const bool ends = variant.size() == end || variant[end] == '-' || variant[end] == '_';
    if (variant.starts_with(family->name) && ends && end > out.size()) out = family->name;
  }
  return std::string(out);
}

/// Of a variant, as part of a test's name.
inline std::string test_name(std::string variant) {
  std::erase(variant, '-');
  return variant;
}

/// A model of experts whose routers do all that they can.
inline ModelConfig with_routing(ModelConfig c) {
  c.experts = {.experts = 4,
               .chosen = 2,
               .score = RouterScore::Sigmoid,
               .scale = 2.5,
               .groups = 2,
               .chosen_groups = 1,
               .bias = true,
               .bias_rate = 0.25,
               .jitter = 0.1,
               .samples = 2,
               .capacity = 1.25,
               .least_capacity = 3,
               .residual = true,
               .shared_width = 10,
               .balance = 0.3,
               .z_loss = 0.1};
  return c;
}

/// A family, or a variant of one: "bert-masked" and the like, whose head computes some positions of
/// a sample only; "bert-classes", which tells classes of samples, "bert-tags", of tokens,
/// "bert-spans", which finds ends of answers; "bert-numbers" and "bert-number", which tells numbers
/// of samples, and "bert-sets", of which each has several labels; "bert-sentences", which makes
/// vectors of three texts; "bert-choices", which tells the right one of three; "bert-alone", of samples of one part;
/// "mixtral-routed" and "deepseek_v3-routed", whose routers do all that they can;
/// "gpt2-preferences", which learns from pairs of answers, "gpt2-adapted" the same by adapters;
/// "transformer_post" and "t5_relu", in which all that the family has a choice of is the other way.
/// Where there is a decoder too, it has half of the layers.
inline ModelConfig tiny(const std::string& family, std::int64_t layers = 2) {
  ModelConfig c;
  c.family = family_of_variant(family);
  c.layers = layers;
  c.masked_positions = family.ends_with("-masked") ? 3 : 0;
  c.heads = 4;
  c.kv_heads = family == "llama" ? 2 : 0;
  c.width = 16;
  c.ffn_width = 24;
  c.context = 8;
  c.vocabulary = 19;
  c.window = 5;
  c.dropout = 0.2;
  if (c.family == "albert" || c.family == "electra") c.embedding_width = 12;
  if (c.family == "electra") c.generator_width = 8;
  if (c.family == "transformer" || c.family == "t5" || c.family == "bart") {
    c.layers = layers / 2, c.decoder_layers = layers - layers / 2;
    c.source_context = 6;
  }
  if (reads_field(c, "num-experts"))
    c.experts = {.experts = 3, .chosen = 2, .shared_width = 10, .balance = 0.3, .z_loss = 0.1};
  if (c.family == "deepseek_v3") {
    c.latent = {
        .kv_rank = 6, .query_rank = 10, .rotary_width = 4, .plain_width = 6, .value_width = 8};
    c.expert_layers = layers > 1 ? text("[0]+[1]*", layers - 1) : "1";
    c.experts.width = 20;
  }
  if (family.ends_with("-routed")) c = with_routing(c);
  if (c.family == "t5") {
    c.tied_head = family == c.family.name();
    c.activation = c.tied_head ? "gated-gelu" : "relu";
    c.head_width = c.tied_head ? 0 : 6;
  }
  if (c.family == "transformer") {
    c.post_norm = c.shared_embedding = c.sinusoidal = family != c.family.name();
    c.tied_head = family == c.family.name();
  }
  if (family.ends_with("-tags"))
    c.task = kTokenClassification, c.classes = 5, c.classifier_dropout = 0.3;
  if (family.ends_with("-spans")) c.task = kQuestionAnswering, c.doc_stride = 2;
  if (family.ends_with("-alone")) c.task = kMaskedLm;
  if (family.ends_with("-classes"))
    c.task = kSequenceClassification, c.classes = 5, c.classifier_dropout = 0.3;
  if (family.ends_with("-numbers")) c.task = kRegression, c.classes = 3;
  if (family.ends_with("-number")) c.task = kRegression, c.classes = 1;
  if (family.ends_with("-choices"))
    c.task = kMultipleChoice, c.texts = 3, c.classifier_dropout = 0.3;
  if (family.ends_with("-sentences")) c.task = kSentenceEmbedding, c.texts = 3;
  if (family.ends_with("-preferences")) c.task = kPreference;
  if (family.ends_with("-adapted")) c.task = kPreference, c.lora.rank = 2;
  if (family.ends_with("-sets")) c.task = kMultiLabelClassification, c.classes = 5;
  if (reads_field(c, "image-size"))
    c.image_size = 8, c.patch_size = 4, c.image_channels = 2, c.classes = 5;
  return c;
}

/// Numbers from 0 to 1.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}
  double operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) * 0x1p-24;
  }

 private:
  std::uint64_t state_;
};

/// Element i of an input: a float from -1 to 1, or a whole number. Samples have unequal numbers of
/// labels, and at least one counts in each that has several.
inline double random_element(const TaskInput& input, std::int64_t i, RandomNumbers& random) {
  if (input.dtype == DType::F32)
    return input.ignorable && i > 0 && random() < 0.2 ? kIgnoredNumber : 2 * random() - 1;
  const std::int64_t of_sample = input.sample.numel();
  const bool may_be_ignored = input.ignorable && (of_sample == 1 ? i > 0 : i % of_sample != 0);
  if (may_be_ignored && random() < 0.2) return kIgnoredLabel;
  return std::floor(random() * static_cast<double>(input.values));
}

/// Random parameters, copies of them, and a batch of `task` with 12 samples.
inline Bindings random_inputs(const Graph& graph, const Task& task) {
  Bindings in;
  RandomNumbers next(1);
  for (const State& state : graph.states()) {
    HostTensor value(graph.type(state.value));
    const bool parameter = state.role == Role::Parameter || state.role == Role::Reference;
    for (std::int64_t i = 0; i < value.numel() && parameter; ++i) value.set(i, next() - 0.5);
    if (is_setting(state.role)) value.set(0, state.init.value);
    if (state.role != Role::Copy) in.states.emplace(state.path, value);
  }
  for (const State& state : graph.states()) {
    if (state.role == Role::Copy)
      in.states.emplace(state.path, in.states.at(state.path.substr(0, state.path.rfind('.'))));
  }
  for (const TaskInput& input : task.inputs) {
    Shape shape{12};
    for (const std::int64_t size : input.sample) shape.push_back(size);
    HostTensor value(input.dtype, shape);
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, random_element(input, i, next));
    in.batch.emplace(input.name, value);
  }
  return in;
}

}  // namespace tessera
