#include "tessera/tensor/chosen_rows.h"

namespace tessera {

double mean_share(const ChosenRows& rows, int members) {
  if (rows.choices == 0) return 1;
  double none = 1;
  for (std::int64_t i = 0; i < rows.choices; ++i) {
    const std::int64_t others = (members - 1) * rows.per_member - i;
    none *= others <= 0
                ? 0.0
                : static_cast<double>(others) / static_cast<double>(members * rows.per_member - i);
  }
  return 1 - none;
}

}  // namespace tessera
