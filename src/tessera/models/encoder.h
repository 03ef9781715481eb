#pragma once
/// The encoder of models whose tokens see the whole sample, BERT and its variants: what all their
/// tasks share.

#include <optional>
#include <string_view>

#include "tessera/models/family.h"
#include "tessera/nn/transformer.h"
#include "tessera/token_files/masked_pairs.h"
#include "tessera/tokenizers/text_frame.h"

namespace tessera {

/// In what the variants differ.
struct MaskedModel {
  SampleParts parts = SampleParts::Elsewhere;  // of One, all tokens have one type
  std::string_view second = "nsp";    // what judges the second part: a block, and metrics "nsp_..."
  std::int64_t unread_positions = 0;  // rows of the table of positions before the first token's
  bool sentence_files = false;        // token files of sentences train it too, as Megatron-LM's
  FeedForward feed_forward = FeedForward::GeluErf;  // of layers; the head has the same GELU
  bool factorised = false;     // tables are embedding_width wide, and a product makes the width
  bool shared_layers = false;  // all layers have the weights of the first
};

/// Sizes of the layers; norms stand behind each part, and there are biases.
TransformerLayer encoder_layer_of(const ModelConfig& config, const MaskedModel& model);

/// How wide the tables of tokens, types and positions are.
std::int64_t table_width(const ModelConfig& config, const MaskedModel& model);

struct EncodedTokens {
  Value rows;   // [b, s, width]
  Value table;  // of tokens [vocabulary, table width]
};
/// Embedding and layers. Inputs: ids, mask [b, s] of i32, 0 at padding; and types [b, s], or all
/// tokens have the first one. Blocks: embed, layers.N.
EncodedTokens encode_tokens(const ModelConfig& config, const MaskedModel& model,
                            const TaskValues& inputs, const Pass& pass);

/// Rows of x [b, s, d] at positions [b, k]: [b, k, d]. Exact: all but one term of each sum are 0.
/// Where the sequence is split, ranks exchange these rows alone.
Value rows_at(Value x, Value positions);
/// The first row of each sample of x [b, s, d]: [b, d].
Value first_rows(Value x);
/// tanh of a product of the first rows: [b, d]. Block: pooler.
Value pooled(const ModelConfig& config, Value x);

/// What stands around the texts of a sample, and behind them.
struct SampleFrame {
  TextFrame frame;
  std::int32_t pad = 0;
  std::optional<std::int32_t> not_last = {};  // LabelledTextsOptions::not_last
};
/// As the tokenizer's post-processor says, or, of a vocabulary without such tokens, with those that
/// follow its own. Errors: Fault::Data: a tokenizer that has the tokens and adds none, or has types
/// that the model's table has not.
SampleFrame encoder_frame(const MaskedModel& model, const Vocabulary& vocabulary);
/// The samples of `task` are cut behind alone. Errors: Fault::Data: the frame cuts the beginning.
void require_end_cut(const TextFrame& frame, std::string_view task);

}  // namespace tessera
