#include "tessera/bench/turn.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/train/metrics.h"

namespace tessera {

void TurnWriter::on_start(const RunStart& start) {
  write_(nlohmann::json{{"parameters", start.parameters},
                        {"tokens_per_step", start.tokens_per_step},
                        {"devices", start.devices},
                        {"planned_bytes", start.peak_bytes},
                        {"planned_host_bytes", start.host_bytes},
                        {"kernels", start.kernels}}
             .dump());
  const std::int64_t free = free_memory_bytes(), wanted = start.main_memory_bytes;
  if (only_plan_) {
    why_not_ = "as --planned asks";
  } else if (free > 0 && wanted > free) {
    why_not_ =
        text("it takes ", bytes_text(wanted), " of memory, and ", bytes_text(free), " are free");
  }
  require(why_not_.empty(), why_not_);
}

void TurnWriter::on_step(const StepRecord& record) {
  // Inf and nan, which JSON lacks, become null.
  write_(
      nlohmann::json{{"seconds", record.seconds}, {"loss", record.loss}, {"lr", record.lr}}.dump());
}

void TurnWriter::end(int code, const std::string& message) {
  write_(nlohmann::json{{"code", code},
                        {"message", why_not_.empty() ? message : why_not_},
                        {"planned_only", !why_not_.empty()},
                        {"peak_rss", peak_rss_bytes()}}
             .dump());
}

void TurnReader::read(const std::string& line) {
  const nlohmann::json told = nlohmann::json::parse(line);
  if (told.contains("loss")) {
    const nlohmann::json& loss = told["loss"];
    turn_.losses.push_back(loss.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                          : loss.get<double>());
    if (told.contains("lr")) turn_.rates.push_back(told["lr"]);
    if (++done_ > length_.warmup) turn_.step_seconds.push_back(told["seconds"]);
  } else if (told.contains("code")) {
    ended_ = true;
    turn_.code = told["code"];
    turn_.planned_only = told["planned_only"];
    turn_.peak_bytes = told["peak_rss"].get<std::int64_t>() / turn_.devices;
    if (told["code"] != 0) turn_.failure = told["message"];
  } else {
    turn_.parameters = told["parameters"];
    turn_.tokens_per_step = told["tokens_per_step"];
    turn_.devices = told["devices"];
    turn_.planned_bytes = told["planned_bytes"];
    turn_.planned_host_bytes = told["planned_host_bytes"];
    turn_.kernels = told["kernels"].get<std::vector<std::string>>();
  }
}

Turn TurnReader::finish() && {
  if (!ended_) turn_.failure = "its process ended before the run did";
  if (ended_ && turn_.failure.empty() && done_ < length_.all())
    turn_.failure = text("it made ", done_, " of ", length_.all(), " steps");
  if (!turn_.failure.empty()) turn_.step_seconds.clear();
  return std::move(turn_);
}

}  // namespace tessera
