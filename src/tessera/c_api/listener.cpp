#include "tessera/c_api/listener.h"

#include <nlohmann/json.hpp>

#include "tessera/train/metrics.h"

namespace tessera {

void Listener::line(const std::string& text) {
  if (listener_.line == nullptr) return;
  const std::scoped_lock lock(mutex_);
  listener_.line(listener_.user, text.c_str());
}

void Listener::event(const std::string& json) {
  if (listener_.event == nullptr) return;
  const std::scoped_lock lock(mutex_);
  if (listener_.event(listener_.user, json.c_str()) != 0) stop_ = true;
}

void Listener::on_start(const RunStart& start) {
  event(nlohmann::ordered_json{{"kind", "start"},
                               {"step", start.first_step},
                               {"steps", start.steps},
                               {"parameters", start.parameters},
                               {"tokens_per_step", start.tokens_per_step},
                               {"devices", start.devices}}
            .dump());
}

void Listener::on_step(const StepRecord& record) { event(metrics_line(record)); }

void Listener::on_valid(std::int64_t step, double loss, const NamedMeans& means) {
  event(metrics_line(step, loss, means));
}

void Listener::on_eval(const EvalRecord& record) { event(metrics_line(record)); }

void Listener::on_test(const TestRecord& record) { event(metrics_line(record)); }

void Listener::on_save(std::int64_t step, const std::string& path) {
  using Object = nlohmann::ordered_json;
  event(Object{{"kind", "save"}, {"step", step}, {"path", path}}.dump(
      -1, ' ', false, Object::error_handler_t::replace));
}

LineBuffer::~LineBuffer() {
  if (!begun_.empty()) listener_.line(begun_);
}

LineBuffer::int_type LineBuffer::overflow(int_type letter) {
  if (letter == '\n') {
    listener_.line(begun_);
    begun_.clear();
  } else if (letter != traits_type::eof()) {
    begun_ += static_cast<char>(letter);
  }
  return 0;
}

std::streamsize LineBuffer::xsputn(const char* text, std::streamsize size) {
  for (std::streamsize i = 0; i < size; ++i) overflow(text[i]);
  return size;
}

}  // namespace tessera
