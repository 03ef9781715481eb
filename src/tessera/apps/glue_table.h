#pragma once
/// Predictions as GLUE takes them: `tessera predict --format glue`.

#include "tessera/models/config.h"
#include "tessera/models/judge.h"

namespace tessera {

/// Columns index, from 0, and prediction: of classes, the label by GLUE's name for it (0 or 1;
/// entailment, not_entailment; entailment, neutral, contradiction); of a regression with one number,
/// from 0 to 5, with three digits behind the point. `predicted`: as `predict` makes it of all rows,
/// with a column for the probability of each label.
///
/// Errors: Fault::Usage: a model of another task, or with labels that are none of GLUE's; the
/// message lists them.
PredictionTable glue_table(const PredictionTable& predicted, const ModelConfig& model);

}  // namespace tessera
