#pragma once
/// How preferences are learned.

namespace tessera {

struct PreferenceConfig {
  double beta = 0.1;       // how much a distance from the reference costs
  double smoothing = 0.0;  // the share of pairs that are taken the other way round
  friend bool operator==(const PreferenceConfig&, const PreferenceConfig&) = default;
};

}  // namespace tessera
