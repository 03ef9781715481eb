#pragma once
/// What layers are told in structs of nn, from JSON with the names of their members.

#include "tessera/c_api/call_fields.h"
#include "tessera/nn/transformer.h"
#include "tessera/nn/transformer_stack.h"

namespace tessera {

/// Words of enumerators are as {"feed_forward": "gelu_tanh", "norm": "layer"}.
TransformerLayer layer_of(CallFields fields);
Visible visible_of(CallFields fields);
Pass pass_of(CallFields fields);
Encoded encoded_of(CallFields fields);
/// Without lambda_func, for which there is "layer_stages": the chunk of each layer, those of the
/// encoder first.
TransformerConfig transformer_config_of(CallFields fields);

}  // namespace tessera
