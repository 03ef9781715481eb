#pragma once
/// What a run tells, on its way to the functions of another language.

#include <atomic>
#include <mutex>
#include <streambuf>
#include <string>

#include "tessera/c_api/c_api.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// Calls the functions of a tessera_listener, one at a time; an answer sets `stop`.
class Listener : public TrainCallback {
 public:
  Listener(const tessera_listener& listener, std::atomic<bool>& stop)
      : listener_(listener), stop_(stop) {}

  void line(const std::string& text);
  void event(const std::string& json);
  void on_start(const RunStart& start) override;
  void on_step(const StepRecord& record) override;
  void on_valid(std::int64_t step, double loss, const NamedMeans& means) override;
  void on_eval(const EvalRecord& record) override;
  void on_test(const TestRecord& record) override;
  void on_save(std::int64_t step, const std::string& path) override;

 private:
  const tessera_listener listener_;
  std::atomic<bool>& stop_;
  std::mutex mutex_;
};

/// Of a stream whose lines a listener hears, the last one also without its end.
class LineBuffer : public std::streambuf {
 public:
  explicit LineBuffer(Listener& listener) : listener_(listener) {}
  ~LineBuffer() override;

 private:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;

  Listener& listener_;
  std::string begun_;  // of the line at hand
};

}  // namespace tessera
