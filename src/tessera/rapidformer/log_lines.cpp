#include "tessera/rapidformer/log_lines.h"

#include <algorithm>
#include <cmath>

#include "tessera/apps/progress.h"
#include "tessera/base/format.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// The losses of a step, as Megatron-LM calls them: what has no other name is the lm loss.
NamedMeans losses_of(double loss, const NamedMeans& means) {
  NamedMeans out;
  for (const auto& [name, value] : means) {
    if (!name.ends_with("_loss")) continue;
    const std::string kind = name.substr(0, name.size() - 5);
    out.emplace_back(kind == "mlm" ? "lm loss" : text(kind, " loss"), value);
  }
  if (out.empty()) out.emplace_back("lm loss", loss);
  return out;
}

std::string measured_text(const EvalRecord& record) {
  std::string out = format("loss: %.6E | ", record.loss);
  for (const auto& [name, score] : record.scores) out += text(name, format(": %.6f | ", score));
  return out;
}

std::string predictions_text(const EvalRecord& record) {
  return record.predictions.empty() ? "" : text("predictions: ", record.predictions, " | ");
}

}  // namespace

LogLines::LogLines(Console& console, const RunConfig& config)
    : console_(console),
      interval_(config.log_every),
      batch_(config.global_batch_size),
      micro_batches_(config.micro_batches()) {}

void LogLines::on_start(const RunStart& start) {
  steps_ = start.steps;
  if (interval_ == 0) interval_ = steps_between_lines(start.steps - start.first_step);
  line(text(" > number of parameters: ", grouped(start.parameters),
            ", memory of a device: ", bytes_text(start.peak_bytes), ", devices: ", start.devices,
            ", micro-batches of a step: ", micro_batches_, "; compiled in ",
            format("%.2f", start.compile_seconds), " s"));
  if (start.first_step > 0) line(text(" > going on after iteration ", start.first_step));
  if (start.first_step >= start.steps) line(" > nothing to do: all iterations are done");
}

void LogLines::on_step(const StepRecord& record) {
  ++done_;
  seconds_ += record.seconds;
  if (!record.ok) {
    ++skipped_;
    if (std::isnan(record.loss)) ++nan_;
  } else {
    const NamedMeans losses = losses_of(record.loss, record.means);
    if (sums_.empty())
      sums_ = losses;
    else
      for (std::size_t i = 0; i < losses.size(); ++i) sums_[i].second += losses[i].second;
  }
  if (record.step % interval_ == 0 || record.step == steps_) print_interval(record);
  last_ = record;
}

void LogLines::finish() {
  if (done_ > 0) print_interval(last_);
}

void LogLines::print_interval(const StepRecord& last) {
  const auto count = static_cast<double>(done_ - skipped_);
  std::string out = format(" iteration %8lld/%8lld |", static_cast<long long>(last.step),
                           static_cast<long long>(steps_));
  out += format(" consumed samples: %12lld |", static_cast<long long>(last.step * batch_));
  out += format(" elapsed time per iteration (ms): %.1f |",
                seconds_ * 1e3 / static_cast<double>(done_));
  out += format(" learning rate: %.3E |", last.lr);
  out += format(" global batch size: %5lld |", static_cast<long long>(batch_));
  for (const auto& [name, sum] : sums_) out += text(" ", name, format(": %.6E |", sum / count));
  out += format(" loss scale: %.1f |", last.loss_scale.value_or(1.0));
  out += format(" grad norm: %.3f |", last.grad_norm);
  out += format(" number of skipped iterations: %3lld |", static_cast<long long>(skipped_));
  out += format(" number of nan iterations: %3lld |", static_cast<long long>(nan_));
  line(out);
  done_ = skipped_ = nan_ = 0;
  seconds_ = 0;
  sums_.clear();
}

void LogLines::on_valid(std::int64_t step, double loss, const NamedMeans& means) {
  constexpr double kMost = 20;  // of a loss whose perplexity is printed: Megatron-LM's bound
  std::string out = text(" validation loss at iteration ", step, " | ");
  for (const auto& [name, value] : losses_of(loss, means)) {
    out += text(name, format(" value: %.6E | ", value));
    out += text(name, format(" PPL: %.6E | ", std::exp(std::min(kMost, value))));
  }
  framed_line(out);
}

void LogLines::on_eval(const EvalRecord& record) {
  framed_line(text(" evaluation after epoch ", record.epoch, " | ", measured_text(record),
                   predictions_text(record)));
}

void LogLines::on_test(const TestRecord& record) {
  framed_line(text(" test at the end of training, ", record.best ? "best" : "last",
                   " weights, of iteration ", record.measured.step, " | ",
                   record.labelled ? measured_text(record.measured) : "no labels, so no scores | ",
                   predictions_text(record.measured)));
}

void LogLines::on_sample(std::int64_t step, const std::string& sample) {
  line(text(" sample at iteration ", step, ":"));
  line(sample);
}

void LogLines::on_save(std::int64_t step, const std::string& path) {
  line(text("  successfully saved checkpoint at iteration ",
            format("%7lld", static_cast<long long>(step)), " to ", path));
}

void LogLines::on_profile(const std::string& path, const std::string& table) {
  line(table + "wrote the trace " + path);
}

void LogLines::on_notice(const std::string& notice) { line("notice: " + printable(notice)); }

void LogLines::framed_line(const std::string& text) {
  const std::string rule(text.size() + 1, '-');
  line(rule), line(text), line(rule);
}

void LogLines::line(const std::string& text) { console_.out << text << "\n" << std::flush; }

}  // namespace tessera
