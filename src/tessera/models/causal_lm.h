#pragma once
/// Language models that predict the next token from those before it.

#include "tessera/models/family.h"
#include "tessera/models/preference.h"
#include "tessera/models/token_classification.h"

namespace tessera {

/// As TextWriting::logits.
using LogitsFunction = Value (*)(const ModelConfig& config, Value ids, const Pass& pass);

/// The task of predicting the next token.
///
/// Inputs: ids, labels [b, context] of i32; labels are the tokens one later, kIgnoredLabel where
/// there is none. Loss: mean cross-entropy over all labels that count. Data: windows of a text,
/// the samples of token files (token_files/token_files.h), or documents (data/documents.h). With
/// config.reset_positions there is also positions [b, context], with config.reset_attention
/// first_seen [b, context]: see token_files/left_to_right.h.
Task causal_lm(const ModelConfig& config, LogitsFunction logits);

/// The same of causal_transformer with the layers of layer_of; without positions where these are
/// rotary.
Task causal_lm(const ModelConfig& config);

struct CausalRows {
  Value rows;   // [b, s, width], or of the one token that is wanted
  Value table;  // of tokens [vocabulary, width]
};
/// Fields of models with learned positions, those of their head, and those that their language models
/// add to these.
inline constexpr ReadField kGptReads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"},
    {"bias"},    {"norm-eps"},  {"init-std"}};

inline constexpr ReadField kTiedReads[] = {{"tied-head"}};
inline constexpr ReadField kGptPackedReads[] = {{"reset-position-ids"}, {"reset-attention-mask"}};

/// Embedding, `config.layers` layers that see what is before them, and norm. Positions are learned,
/// but for a layer that rotates. Of a family with a query layer it is the last, behind the norm:
/// MindSpore's order without a pipeline. Blocks: embed, layers.N, norm.
CausalRows causal_rows(const ModelConfig& config, TransformerLayer layer, Value ids,
                       const Pass& pass);

/// The same with a head: logits [b, s, vocabulary]. Block: head.
Value causal_transformer(const ModelConfig& config, TransformerLayer layer, Value ids,
                         const Pass& pass);

/// The token that classifiers of texts pass over at the end of a text, as transformers does: the
/// tokenizer's padding, else its eos, which an export names in place of it. nullopt: none.
std::optional<std::int32_t> end_padding(const Vocabulary& vocabulary);

/// Tells the class of texts by the row of the last token, which has seen all. A product without a
/// bias makes the logits (block score), as in transformers' ...ForSequenceClassification. Texts
/// stand within what the tokenizer's post-processor puts around them, or one behind the other.
TextClassifier causal_classifier(const ModelConfig& config);

/// Tells the class of each word by the row of its first token, which has seen what is before it.
/// Dropout, and a product with a bias (block score), as in transformers' ...ForTokenClassification.
Task causal_token_classification(const ModelConfig& config);

/// Fields of both tables.
template <const auto& kSome, const auto& kMore>
inline constexpr auto kJoinedReads = joined(kSome, kMore);

/// The rows of a family whose layers are those of layer_of: of the language model, of texts, of
/// words and of preferences. `kHead`: fields of its head; `kPacked`: of samples that hold several
/// documents.
template <const auto& kHead, const auto& kPacked>
constexpr auto causal_tasks() {
  return joined(
      std::array{FamilyTask{kCausalLm, causal_lm, kJoinedReads<kHead, kPacked>}},
      text_tasks<causal_classifier>(kClassesReads, /*head=*/"score"),
      std::array{FamilyTask{kTokenClassification, causal_token_classification, kClassifierReads,
                            find_classifier_problems, /*head=*/"score"},
                 FamilyTask{kPreference, preference, kJoinedReads<kHead, kPreferenceReads>,
                            find_preference_problems}});
}

}  // namespace tessera
