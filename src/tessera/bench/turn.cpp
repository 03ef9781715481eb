#include "tessera/bench/turn.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/train/metrics.h"

namespace tessera {

void TurnWriter::on_start(const RunStart& start) {
  write_(nlohmann::json{{"parameters", start.parameters},
                        {"tokens_per_step", start.tokens_per_step},
                        {"devices", start.devices},
                        {"flops_per_step", start.flops_per_step - start.recomputed_flops_per_step},
                        {"planned_bytes", start.peak_bytes},
                        {"planned_host_bytes", start.host.memory},
                        {"planned_file_bytes", start.host.file},
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
  nlohmann::json line = {{"seconds", record.seconds}, {"loss", record.loss}, {"lr", record.lr}};
  if (!record.ok) line["skipped"] = true;
  write_(line.dump());
}

void TurnWriter::end(int code, const std::string& message) {
  write_(nlohmann::json{{"code", code},
                        {"message", why_not_.empty() ? message : why_not_},
                        {"planned_only", !why_not_.empty()},
                        {"peak_rss", peak_rss_bytes()}}
             .dump());
}

void TurnReader::read(const std::string& line) {
  const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_object()) return;
  try {
    if (parsed.contains("seconds")) {
      if (done_ == length_.all()) return;
      const double seconds = parsed.at("seconds");
      if (++done_ > length_.warmup) turn_.step_seconds.push_back(seconds);
      if (parsed.contains("loss"))
        turn_.losses.push_back(parsed.at("loss").is_null()
                                   ? std::numeric_limits<double>::quiet_NaN()
                                   : parsed.at("loss").get<double>());
      if (parsed.contains("lr")) turn_.rates.push_back(parsed.at("lr"));
      if (parsed.value("skipped", false)) ++turn_.skipped;
    } else if (parsed.contains("code")) {
      turn_.code = parsed.at("code");
      turn_.planned_only = parsed.at("planned_only");
      turn_.peak_bytes = parsed.at("peak_rss").get<std::int64_t>() / turn_.devices;
      if (turn_.code != 0) turn_.failure = parsed.at("message");
    } else if (parsed.contains("parameters")) {
      turn_.parameters = parsed.at("parameters");
      turn_.tokens_per_step = parsed.at("tokens_per_step");
      turn_.devices = std::max<std::int64_t>(1, parsed.at("devices"));
      turn_.model_flops = parsed.at("flops_per_step");
      turn_.planned_bytes = parsed.at("planned_bytes");
      turn_.planned_host_bytes = parsed.at("planned_host_bytes");
      turn_.planned_file_bytes = parsed.value("planned_file_bytes", std::int64_t{0});
      turn_.kernels = parsed.at("kernels").get<std::vector<std::string>>();
    }
  } catch (const nlohmann::json::exception&) {
    turn_.failure =
        text("it wrote '", printable(line.substr(0, 100)), "', which is not a line of a turn");
  }
}

Turn TurnReader::finish_cut() && {
  turn_.failure.clear();
  return std::move(turn_);
}

Turn TurnReader::finish(const std::string& ending) && {
  if (!ending.empty()) turn_.failure = ending;
  if (turn_.failure.empty() && done_ < length_.all())
    turn_.failure =
        done_ == 0 ? text("it reported no step, which is {\"seconds\": S} on a line of its own")
                   : text("it made ", done_, " of ", length_.all(), " steps");
  if (!turn_.failure.empty()) turn_.step_seconds.clear();
  return std::move(turn_);
}

}  // namespace tessera
