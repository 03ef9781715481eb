#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

void read_encoder(const HubConfig& from, double dropout, ModelConfig& to) {
  to.width = from.count("hidden_size", 768);
  to.layers = from.count("num_hidden_layers", 12);
  to.heads = from.count("num_attention_heads", 12);
  to.ffn_width = from.count("intermediate_size", 3072);
  to.norm_eps = from.number("layer_norm_eps", 1e-12);
  to.init_std = from.number("initializer_range", 0.02);
  to.dropout = from.same_rate({"hidden_dropout_prob"}, dropout);
  to.attention_dropout = from.rate_beside("attention_probs_dropout_prob", dropout, to.dropout);
  from.require_word("hidden_act", "gelu", {"gelu"});
}

void write_encoder(const ModelConfig& from, HubJson& to) {
  to["hidden_size"] = from.width;
  to["num_hidden_layers"] = from.layers;
  to["num_attention_heads"] = from.heads;
  to["intermediate_size"] = from.hidden();
  to["layer_norm_eps"] = from.norm_eps;
  to["initializer_range"] = from.init_std;
  to["hidden_dropout_prob"] = from.dropout;
  to["attention_probs_dropout_prob"] = from.attention_rate();
  to["hidden_act"] = "gelu";
}

double read_classifier_dropout(const HubConfig& from, std::string_view key, double standard) {
  if (!from.has(key)) return standard;
  const double rate = from.number(key, standard);
  if (!(rate >= 0 && rate < 1))
    fail(Fault::Data, from.path(), ": ", key, " is ", rate,
         "; it must be at least 0 and less than 1");
  return rate;
}

}  // namespace tessera
