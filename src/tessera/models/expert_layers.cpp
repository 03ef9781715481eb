#include "tessera/models/expert_layers.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/config.h"

namespace tessera {

namespace {

constexpr int kMostNested = 100;  // parentheses

/// Reads list (+ list)*, where a list is [0,1,...] or (...), each * a number.
class LayerListReader {
 public:
  explicit LayerListReader(std::string_view text) : text_(text), rest_(text) {}

  std::vector<bool> all() {
    std::vector<bool> out = sum(0);
    if (!rest_.empty() || out.empty()) fail_here();
    return out;
  }

 private:
  [[noreturn]] void fail_here() const {
    fail(Fault::Usage, "moe-layer-freq is '", text_, "'; it is a number, as 2 for every second ",
         "layer, or a list of a 0 or 1 for each layer, as [0]*3+[1]*9");
  }
  bool take(char c) {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    return true;
  }
  std::int64_t number() {
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc() || out < 0) fail_here();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return out;
  }
  void check_size(std::int64_t size) const {
    require(size <= kMaxLayers, "moe-layer-freq is '", text_, "', of more than ", kMaxLayers,
            " layers; give a number for each layer");
  }
  std::vector<bool> list(int nested) {
    std::vector<bool> out;
    if (take('(')) {
      if (nested == kMostNested) fail_here();
      out = sum(nested + 1);
      if (!take(')')) fail_here();
    } else if (take('[')) {
      do {
        const std::int64_t one = number();
        if (one > 1) fail_here();
        out.push_back(one == 1);
      } while (take(','));
      if (!take(']')) fail_here();
    } else {
      fail_here();
    }
    while (take('*')) {
      const std::int64_t times = number();
      check_size(times);
      check_size(times * std::ssize(out));
      std::vector<bool> more;
      for (std::int64_t i = 0; i < times; ++i) more.insert(more.end(), out.begin(), out.end());
      out = std::move(more);
    }
    return out;
  }
  std::vector<bool> sum(int nested) {
    std::vector<bool> out = list(nested);
    while (take('+')) {
      const std::vector<bool> more = list(nested);
      out.insert(out.end(), more.begin(), more.end());
      check_size(std::ssize(out));
    }
    return out;
  }

  std::string_view text_, rest_;
};

}  // namespace

ExpertLayers::ExpertLayers(std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every_);
  if (error == std::errc() && end == text.data() + text.size() && every_ > 0) return;
  list_ = LayerListReader(text).all();
}

bool ExpertLayers::has(std::int64_t layer) const {
  if (list_.empty()) return layer % every_ == 0;
  return layer < listed() && list_[static_cast<std::size_t>(layer)];
}

std::string expert_layers_text(const std::vector<bool>& layers) {
  const std::int64_t count = std::ssize(layers);
  for (std::int64_t every = 1; every < std::max<std::int64_t>(count, 2); ++every) {
    std::int64_t i = 0;
    while (i < count && layers[static_cast<std::size_t>(i)] == (i % every == 0)) ++i;
    if (i == count) return text(every);
  }
  std::vector<std::string> runs;
  for (auto at = layers.begin(); at != layers.end();) {
    const auto end = std::find(at, layers.end(), !*at);
    runs.push_back(text("[", *at ? 1 : 0, "]", end - at > 1 ? text("*", end - at) : ""));
    at = end;
  }
  return join(runs, "+");
}

}  // namespace tessera
