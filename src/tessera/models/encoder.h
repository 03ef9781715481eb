#pragma once
/// The encoder of models whose tokens see the whole sample, BERT and its variants: what all their
/// tasks share.

#include <optional>
#include <string_view>

#include "tessera/models/family.h"
#include "tessera/nn/transformer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/token_files/masked_pairs.h"
#include "tessera/tokenizers/text_frame.h"

namespace tessera {

/// What tells the class of a text by its first row: out(norm(activation(dense(row)))), with dropout
/// before `out`, or before both.
struct FirstRowHead {
  std::string_view dense = "pooler", norm = "", out = "classifier";  // blocks; empty: no norm
  Value (*activation)(Value x) = [](Value x) { return tanh(x); };
  bool drops_twice = false;
  bool bias = true;              // of dense
  bool on_tokens = false;        // dense, activation and norm also run on every token
  bool drops_as_layers = false;  // the rate of dropout is theirs, whatever classifier-dropout says
};
/// RoBERTa's, and those of the encoders that have no pooler.
constexpr FirstRowHead classifier_block(Value (*activation)(Value x)) {
  return {"classifier.dense", "", "classifier.out_proj", activation, true};
}

/// Whether tables are embedding_width wide, and a product makes the width of it.
enum class NarrowTables { Never, Always, IfWidthsDiffer };

/// In what the variants differ.
struct MaskedModel {
  SampleParts parts = SampleParts::Elsewhere;  // of pretraining's samples
  std::string_view second = "nsp";    // what judges the second part: a block, and metrics "nsp_..."
  std::int64_t types = 2;             // of tokens; 0: there is no table of them
  bool doubled_separator = false;     // between two texts, where no tokenizer says otherwise
  std::int64_t unread_positions = 0;  // rows of the table of positions before the first token's
  bool positions = true;              // there is a table of them
  bool distances = false;             // DeBERTa's: layers add scores of tokens and distances
  bool blind_padding = false;         // padding has zeros in place of rows, and sees nothing
  bool relative = false;              // layers add numbers of T5's kinds of distances to scores
  std::int64_t longest_run = 1;       // words of a text that are masked together; 1: tokens are
  bool masks_alone = false;           // MaskedPairsOptions::masks_alone
  bool sentence_files = false;        // token files of sentences train it too, as Megatron-LM's
  FeedForward feed_forward = FeedForward::GeluErf;  // of layers; the head has the same GELU
  NarrowTables narrow = NarrowTables::Never;
  bool shared_layers = false;   // all layers have the weights of the first
  bool pre_norm = false;        // norms before each part, and one behind the last layer
  bool bare_tables = false;     // what tables make has no norm behind it
  bool bare_first = false;      // attention of the first layer has no norm before it
  bool may_pool = false;        // `pooling` says which row tells the class of a text
  FirstRowHead text_head = {};  // of texts' classes
  std::optional<FirstRowHead> choice_head = {};  // of choices; empty: as text_head
  std::string_view answers = "qa_outputs";       // the block that tells the ends of answers
  bool drops_before_answers = false;             // which has dropout before it
};

/// Sizes of the layers, and where their norms stand.
TransformerLayer encoder_layer_of(const ModelConfig& config, const MaskedModel& model);

/// How wide the tables of tokens, types and positions are.
std::int64_t table_width(const ModelConfig& config, const MaskedModel& model);

/// Where the parts of an encoder are, in a model that has two.
struct EncoderBlocks {
  std::string_view embed = "embed";
  std::string_view project = "project";  // in `embed`
  std::string_view layers = "layers";
  std::string_view owner = "";  // of the parameters of `embed`; empty: it has its own
};

struct EncodedTokens {
  Value rows;   // [b, s, width]
  Value table;  // of tokens [vocabulary, table width]
};
/// Embedding and layers. Inputs: ids, mask [b, s] of i32, 0 at padding; and types [b, s], or all
/// tokens have the first one. Blocks: embed, layers.N; norm, of pre_norm.
EncodedTokens encode_tokens(const ModelConfig& config, const MaskedModel& model,
                            const TaskValues& inputs, const Pass& pass,
                            const EncoderBlocks& blocks = {});
/// Declares the parameters between the tables in `blocks.embed` and layers, where there are some:
/// another encoder that shares the tables can then be computed before this one.
void declare_projection(const ModelConfig& config, const MaskedModel& model, Builder& builder,
                        const EncoderBlocks& blocks = {});

/// Rows of x [b, s, d] at positions [b, k]: [b, k, d]. Exact: all but one term of each sum are 0.
/// Where the sequence is split, ranks exchange these rows alone.
Value rows_at(Value x, Value positions);
/// The first row of each sample of x [b, s, d]: [b, d].
Value first_rows(Value x);
/// The mean over those tokens of each sample whose mask [b, s] is not 0: [b, d].
Value mean_rows(Value x, Value mask);
/// What `out` of MaskedModel::text_head reads, but for dropout: rows [..., d] -> [..., d].
Value pooled(const ModelConfig& config, const MaskedModel& model, Value rows);

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
