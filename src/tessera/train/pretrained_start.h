#pragma once
/// A run that begins with a model in a folder as Hugging Face saves it.

#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {

class Vocabulary;

/// Whether the run begins with a folder of Hugging Face's. Errors: Fault::Data: a folder that is
/// none, and no checkpoint either; Fault::Usage: init_from_config of anything else.
bool is_hub_folder(const RunConfig& config);
/// Opens it. `weights`: of a run that does not begin with its config.json alone.
PretrainedModel open_pretrained(const RunConfig& config, OpenPretrained::Weights weights);

/// The model is that of the folder but for what the user told; and so is the tokenizer, where the
/// folder has one and no vocabulary was told.
void take_model(RunConfig& config, const PretrainedModel& from);

/// Says of a failure to open `name` how to get a model of Hugging Face by that name, if it can be
/// one.
Error with_download_hint(const Error& failure, const std::string& name);

/// The weights of the folder fit: every field of the model is what it says, but the lengths of
/// samples.
void compare_model(const RunConfig& config, const PretrainedModel& from, Problems& problems);

/// Weights whose folder has no tokenizer, on tokens that are made of the data: a notice. Empty: it
/// is not so.
std::string notice_of_unknown_rows(const PretrainedModel& from, const Vocabulary& vocabulary);

/// Special tokens of its config.json that a run does not take, as its tokens are made of the data: a
/// notice. Empty: it is not so.
std::string notice_of_other_tokens(const RunConfig& config, const PretrainedModel& from);

/// A first value of weights that `config` asks for, where `path` has these weights: a notice. Empty:
/// it asks for none.
std::string notice_of_unread_first_value(const RunConfig& config, const std::string& path);

/// A classifier that finds the end of a text by its config's pad_token_id needs a tokenizer with
/// the same padding: what the two read of a text that ends in it would differ. Errors: Fault::Data.
void require_same_padding(const PretrainedModel& from, const Vocabulary& vocabulary);
/// One that is used as it is must have such an id, if the tokenizer has padding. Errors:
/// Fault::Data.
void require_padding(const PretrainedModel& from, const Vocabulary& vocabulary);

}  // namespace tessera
