#pragma once
/// What config.json says in the same words of BERT and of the encoders that came after it.

#include "tessera/models/config.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// Sizes of layers, norms, rates and first values. `dropout`: the rate where config.json has none.
/// Errors: of HubConfig; another activation than GELU in its exact form.
void read_encoder(const HubConfig& from, double dropout, ModelConfig& to);
void write_encoder(const ModelConfig& from, HubJson& to);

/// The rate of dropout before a classifier, whatever the task; -1, null there: that of hidden
/// layers. Errors: Fault::Data: not from 0 to below 1.
double read_classifier_dropout(const HubConfig& from, std::string_view key, double standard);

}  // namespace tessera
