#pragma once
/// Models that write one sequence from another.

#include <optional>

#include "tessera/models/family.h"

namespace tessera {

/// The special tokens of translations.
struct TranslationTokens {
  std::int32_t pad, start, end;
  /// Before each source, and behind the start before each target.
  std::optional<std::int32_t> first = std::nullopt;
};
inline constexpr std::int64_t kTranslationTokens = 3;
/// Those that the configuration names, or the last three ids of the model's vocabulary.
TranslationTokens translation_tokens(const ModelConfig& config);
/// As ModelConfig::special_tokens has them: "0,0,1", and the first at the end where there is one.
std::string to_text(const TranslationTokens& tokens);
/// Adds what is wrong with special tokens that a configuration names.
void find_token_problems(const ModelConfig& config, FieldProblems& problems);

/// Ids that a configuration names may be those of texts, where no tokenizer has such tokens.
/// Errors: Fault::Usage: some are.
void require_not_of_texts(const ModelConfig& config, const Vocabulary& vocabulary);

/// FamilyTask::reads of models that write one sequence from another.
inline constexpr ReadField kPairReads[] = {{"source-context"}};

/// ModelFamily::stacks: an encoder's layers, and a decoder's.
std::vector<LayerStack> stacks_of_pairs(const ModelConfig& config);

/// A stack's inputs see no padding: what pass.mask says, or the padding token.
Visible visible_source(const ModelConfig& config, Value source, const Pass& pass);
/// The table of tokens in the block BLOCK.token. That of "embed" is the source's, and of a model
/// that has one for all of them.
Value token_table(const ModelConfig& config, Builder& builder, const WeightInit& init,
                  std::string_view block = "embed");

/// ModelFamily::tokens_of: padding is the start.
std::string started_by_padding(const Vocabulary& vocabulary);

/// A model that writes one sequence from another: what it is trained by, and the same in two parts,
/// by which it writes.
struct TranslationModel {
  /// Logits [b, t, vocabulary] of what follows each of the ids [b, t], for source [b, s].
  Value (*logits)(const ModelConfig& config, Value source, Value ids, const Pass& pass);
  /// Reads a source [b, s]: what `next` needs of it goes into caches.
  void (*read_source)(const ModelConfig& config, Value source);
  /// The logits by these caches, and by those of earlier tokens, as `pass` says.
  Value (*next)(const ModelConfig& config, Value ids, const Pass& pass);
  bool sentence_files = false;  // token files of sentences train it too, as Megatron-LM's T5
};

/// The task of writing the target of a source, token after token.
///
/// Inputs: source [b, source()] and ids [b, context], which begin with the start token; labels
/// [b, context]: the tokens that follow, the end token last, kIgnoredLabel behind it. All are i32,
/// padded with the pad token. Loss: mean cross-entropy over all labels that count. Data: pairs
/// (data/pairs.h), every one once per epoch, in an order drawn anew for each; or token files of
/// sentences (token_files/sentence_spans.h). Texts are written
/// from the start token on, until the end token; by default each token is the likeliest.
Task translation(const ModelConfig& config, const TranslationModel& model);

/// What logits are multiplied by: logit_scale, or 1 / sqrt(width) of a tied head.
double tied_logit_scale(const ModelConfig& config);

}  // namespace tessera
