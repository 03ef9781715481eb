#include "tessera/models/stop_texts.h"

#include <algorithm>
#include <utility>

namespace tessera {

std::string StopTexts::add(std::string_view piece) {
  if (stopped_) return "";
  pending_ += piece;
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, pending_.find(stop));
  stopped_ = first != std::string::npos;
  if (stopped_) {
    pending_.resize(first);
    return std::exchange(pending_, {});
  }
  std::size_t held = 0;  // bytes at the end that begin a stop
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, pending_.size()); n > held; --n) {
      if (pending_.ends_with(std::string_view(stop).substr(0, n))) held = n;
    }
  }
  std::string out = pending_.substr(0, pending_.size() - held);
  pending_.erase(0, out.size());
  return out;
}

std::string StopTexts::rest() { return std::exchange(pending_, {}); }

}  // namespace tessera
