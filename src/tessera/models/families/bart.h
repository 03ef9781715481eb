#pragma once
/// BART and the models after it, which differ in where norms stand, in positions and in tables.

#include "tessera/base/joined.h"
#include "tessera/models/translation.h"

namespace tessera {

struct BartForm {
  bool post_norm = true;       // norms behind each part; else before, and at the end of stacks
  bool embedding_norm = true;  // behind what a stack reads
  bool sines = false;          // positions; else learned
  bool two_tables = false;     // unless ModelConfig::shared_embedding; else there is one
  bool logit_bias = false;     // added to logits; it does not learn
};

inline constexpr BartForm kMarianForm = {
    .embedding_norm = false, .sines = true, .two_tables = true, .logit_bias = true};
inline constexpr BartForm kPegasusForm = {
    .post_norm = false, .embedding_norm = false, .sines = true, .logit_bias = true};

Value bart_logits(const BartForm& form, const ModelConfig& config, Value source, Value ids,
                  const Pass& pass);
void read_bart_source(const BartForm& form, const ModelConfig& config, Value source);
Value next_of_bart(const BartForm& form, const ModelConfig& config, Value ids, const Pass& pass);
void find_bart_problems(const BartForm& form, const ModelConfig& config, FieldProblems& problems);

template <BartForm kForm>
inline constexpr TranslationModel kBartFormModel = {
    .logits = [](const ModelConfig& config, Value source, Value ids, const Pass& pass) -> Value {
      return bart_logits(kForm, config, source, ids, pass);
    },
    .read_source = [](const ModelConfig& config, Value source) -> void {
      read_bart_source(kForm, config, source);
    },
    .next = [](const ModelConfig& config, Value ids, const Pass& pass) -> Value {
      return next_of_bart(kForm, config, ids, pass);
    },
};

template <BartForm kForm>
inline constexpr FamilyTask kBartTasks[] = {
    {kSeq2SeqLm,
     [](const ModelConfig& config) { return translation(config, kBartFormModel<kForm>); },
     kPairReads}};

inline constexpr ReadField kBartReads[] = {{"layers", "those of the encoder"},
                                           {"heads"},
                                           {"width"},
                                           {"ffn-width"},
                                           {"context"},
                                           {"positions", "of sources, and of targets"},
                                           {"vocab-size"},
                                           {"special-tokens"},
                                           {"dropout"},
                                           {"attention-dropout"},
                                           {"decoder-layers"},
                                           {"decoder-heads"},
                                           {"decoder-ffn-width"},
                                           {"scale-embedding"},
                                           {"activation", "gelu, gelu_new, relu, silu or swish"},
                                           {"init-std"}};

/// Of those with a bias of logits.
inline constexpr TensorCut kLogitBiasCuts[] = {{"head.bias", 0, 1}};

/// `with`: names, what is published, cuts and tokens_of.
template <BartForm kForm>
constexpr ModelFamily bart_family(ModelFamily with) {
  if (with.reads.empty()) with.reads = kBartReads;
  if (with.tasks.empty()) with.tasks = kBartTasks<kForm>;
  with.find_problems = [](const ModelConfig& config, FieldProblems& problems) {
    find_bart_problems(kForm, config, problems);
  };
  with.stacks = stacks_of_pairs;
  with.special_tokens = kTranslationTokens;
  return with;
}

}  // namespace tessera
