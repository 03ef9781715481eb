#pragma once
/// Fields of the model and the families that read them: ModelFamily::reads says it once, for
/// errors, for help and for the configuration.

#include <string>

#include "tessera/models/family.h"
#include "tessera/train/fields.h"

namespace tessera {

/// False of a field of the model that the family does not read.
bool is_read(const Field& field, const ModelFamily& family);

/// ", with --family gpt2 or transformer": which families read the field, and what else it means for
/// one. For the field `family` what there is to choose from. Empty where there is nothing to say.
std::string families_text(const Field& field, const OwnFamilies& own);

/// Fields that the user asked for (config.asked_for) and the model's family does not read.
void find_unread_fields(const RunConfig& config, Problems& problems);

/// All others that it does not read become what they are without a preset: nobody can tell them
/// apart, and records of equal models are equal.
void forget_unread_fields(RunConfig& config);

}  // namespace tessera
