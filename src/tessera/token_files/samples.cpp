#include "tessera/token_files/samples.h"

namespace tessera {

EpochPlace place_in_epoch(std::int64_t first, std::int64_t batch, std::int64_t size) {
  const std::int64_t epoch = first / size, of_epoch = first - epoch * size;
  return {epoch + 1, of_epoch / batch + 1};
}

}  // namespace tessera
