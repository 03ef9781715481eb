#include "tessera/ir/strategy_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/words.h"

namespace tessera {

namespace {

constexpr std::string_view kOptionalPin = "pin?";

/// The axes of `moments`, `gradients` and so on.
struct AxesLine {
  std::string_view key;
  std::vector<std::string> Strategy::*axes;
};
constexpr AxesLine kAxesLines[] = {{"major", &Strategy::major},
                                   {"moments", &Strategy::shard_moments},
                                   {"gradients", &Strategy::shard_gradients},
                                   {"parameters", &Strategy::shard_parameters}};

/// The words of the line `host`.
struct HostWord {
  std::string_view word;
  bool OffloadStrategy::*which;
};
constexpr HostWord kHostWords[] = {{"moments", &OffloadStrategy::moments},
                                   {"gradients", &OffloadStrategy::gradients},
                                   {"parameters", &OffloadStrategy::parameters},
                                   {"activations", &OffloadStrategy::activations}};

std::string shardings_text(const std::vector<Sharding>& shardings) { return join(shardings, " "); }

class StrategyLine {
 public:
  explicit StrategyLine(const std::string& line) : line_(line) {
    const std::size_t end = line.find(' ');
    key_ = line.substr(0, end);
    rest_ = end == std::string::npos ? "" : line.substr(end + 1);
  }

  void read(Strategy& to) const {
    if (key_ == "mesh") {
      to.mesh = parse_mesh(rest_);
    } else if (key_ == "batch") {
      to.batch = parse_sharding(rest_).dims;
    } else if (key_ == "pin" || key_ == kOptionalPin) {
      const auto [values, sharding] = split_last();
      to.pins.push_back({values, parse_sharding(sharding), key_ == kOptionalPin});
    } else if (key_ == "op") {
      to.ops.push_back(op_pin());
    } else if (key_ == "threshold") {
      to.shard_threshold = number_behind<std::int64_t>("", rest_);
    } else if (key_ == "unsharded") {
      demand(!rest_.empty(), "names no parameter");
      to.unsharded.push_back(rest_);
    } else if (key_ == "cut") {
      demand(!rest_.empty(), "names no output");
      to.cut_outputs.push_back(rest_);
    } else if (key_ == "pipeline") {
      const std::vector<std::string> words = split(rest_, ' ');
      demand(words.size() == 3, "has a schedule, stages=N and chunks=N");
      to.pipeline.schedule = words[0];
      to.pipeline.stages = number_behind("stages=", words[1]);
      to.pipeline.chunks = number_behind("chunks=", words[2]);
    } else if (key_ == "chunk") {
      const auto [blocks, chunk] = split_last();
      to.pipeline.pins.push_back({blocks, number_behind("", chunk)});
    } else if (key_ == "host") {
      for (const std::string& word : split(rest_, ' ')) {
        const auto found = std::ranges::find(kHostWords, word, &HostWord::word);
        demand(found != std::end(kHostWords),
               "names moments, gradients, parameters or activations");
        to.offload.*found->which = true;
      }
    } else if (key_ == "bucket") {
      to.buckets.bytes = number_behind<std::int64_t>("", rest_);
    } else if (key_ == "group") {
      const auto [parameters, group] = split_last();
      to.buckets.pins.push_back({parameters, number_behind("", group)});
    } else if (key_ == "gather") {
      to.gather = parse_word<GatherScope>(kGatherScopes, rest_, "scope of gathering");
    } else if (key_ == "keys") {
      to.keys = parse_word<KeyExchange>(kKeyExchanges, rest_, "exchange of keys");
    } else if (key_ == "recompute") {
      const auto [blocks, what] = split_last();
      to.recompute.push_back(
          {blocks, parse_word<Recompute>(kRecomputes, what, "granularity of recomputing")});
    } else {
      for (const AxesLine& axes : kAxesLines) {
        if (key_ == axes.key) return void(to.*axes.axes = axes_behind());
      }
      demand(false, "is of none of the kinds of lines that a strategy has");
    }
  }

 private:
  void demand(bool holds, const char* what) const {
    require(holds, "the line '", line_, "' of a strategy ", holds ? "" : what);
  }

  /// The last word, and all before it.
  std::pair<std::string, std::string> split_last() const {
    const std::size_t end = rest_.rfind(' ');
    demand(end != std::string::npos, "has a name and what it is given");
    return {rest_.substr(0, end), rest_.substr(end + 1)};
  }

  template <typename Number = int>
  Number number_behind(std::string_view label, std::string_view word) const {
    demand(word.starts_with(label), "has another word where a number is to be named");
    const std::string_view digits = word.substr(label.size());
    Number out = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    demand(failure == std::errc() && end == digits.data() + digits.size() && !digits.empty(),
           "has something other than a number where one belongs");
    demand(out >= (label.empty() ? 0 : 1), "has a number that is too low");
    return out;
  }

  std::vector<std::string> axes_behind() const {
    std::vector<std::string> out = split(rest_, ' ');
    for (const std::string& axis : out)
      demand(is_axis_name(axis), "names axes, with one blank between");
    return out;
  }

  OpPin op_pin() const {
    const std::vector<std::string> words = split(rest_, ' ');
    demand(words.size() > 1 && words[1] == "ins", "has a path, then ins and shardings");
    OpPin out{words[0], {}};
    std::vector<Sharding>* into = &out.ins;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "outs") {
        into = &out.outs;
      } else {
        into->push_back(parse_sharding(words[i]));
      }
    }
    return out;
  }

  const std::string& line_;
  std::string key_, rest_;
};

}  // namespace

std::string to_text(const Strategy& strategy) {
  std::string out = text("mesh ", strategy.mesh, "\n");
  out += text("batch ", Sharding{strategy.batch, {}}, "\n");
  for (const AxesLine& line : kAxesLines) {
    const std::vector<std::string>& axes = strategy.*line.axes;
    if (!axes.empty()) out += text(line.key, " ", join(axes, " "), "\n");
  }
  if (strategy.shard_threshold != 0) out += text("threshold ", strategy.shard_threshold, "\n");
  for (const std::string& paths : strategy.unsharded) out += text("unsharded ", paths, "\n");
  for (const Pin& pin : strategy.pins)
    out += text(pin.optional ? kOptionalPin : "pin", " ", pin.values, " ", pin.sharding, "\n");
  for (const OpPin& pin : strategy.ops) {
    out += text("op ", pin.op, " ins ", shardings_text(pin.ins));
    out += pin.outs.empty() ? "\n" : text(" outs ", shardings_text(pin.outs), "\n");
  }
  for (const std::string& name : strategy.cut_outputs) out += text("cut ", name, "\n");
  const PipelineStrategy& pipeline = strategy.pipeline;
  if (pipeline != PipelineStrategy{})
    out += text("pipeline ", pipeline.schedule, " stages=", pipeline.stages,
                " chunks=", pipeline.chunks, "\n");
  for (const ChunkPin& pin : pipeline.pins) out += text("chunk ", pin.blocks, " ", pin.chunk, "\n");
  for (const RecomputePin& pin : strategy.recompute)
    out += text("recompute ", pin.blocks, " ", to_text(pin.what), "\n");
  if (strategy.offload.any()) {
    out += "host";
    for (const HostWord& host : kHostWords)
      if (strategy.offload.*host.which) out += text(" ", host.word);
    out += "\n";
  }
  if (strategy.buckets.bytes != 0) out += text("bucket ", strategy.buckets.bytes, "\n");
  for (const BucketPin& pin : strategy.buckets.pins)
    out += text("group ", pin.parameters, " ", pin.group, "\n");
  if (strategy.gather != GatherScope::Block) out += text("gather ", to_text(strategy.gather), "\n");
  if (strategy.keys != KeyExchange::Ring) out += text("keys ", to_text(strategy.keys), "\n");
  return out;
}

Strategy parse_strategy(std::string_view text) {
  Strategy out;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    try {
      StrategyLine(line).read(out);
    } catch (const Error& error) {
      throw error.with(tessera::text("in the line '", line, "' of a strategy"));
    }
  }
  return out;
}

}  // namespace tessera
