#pragma once
/// Fields of the model and of the optimizer, and which families and optimizers read them:
/// ModelFamily::reads and reads_option() say it once, for errors, for help and for the
/// configuration.

#include <string>

#include "tessera/config/fields.h"
#include "tessera/models/family.h"

namespace tessera {

/// False of a field of the model that the family does not read.
bool is_read(const Field& field, const ModelFamily& family);
/// Also false of a field of the optimizer that the run's does not read.
bool is_read(const Field& field, const RunConfig& config);

/// "bias false, tied-head false": what a family does not begin with as others do.
std::string published_text(const ModelFamily& family);

/// ", for decoders or transformer": which families or optimizers read the field, and what
/// else it means for a family. For the field `family` what there is to choose from. Empty where
/// there is nothing to say.
std::string families_text(const Field& field, const OwnFamilies& own);

/// Fields that the user asked for (config.given) and that neither the model's family nor the
/// optimizer reads; and names that a family of the program reads and that are no fields of a model.
void find_unread_fields(const RunConfig& config, Problems& problems);

/// All others that they do not read become what they are without a preset: nobody can tell them
/// apart, and records of equal models are equal.
void forget_unread_fields(RunConfig& config);

}  // namespace tessera
