#include "tessera/apps/patient_callback.h"

#include "tessera/comm/work_alone.h"

namespace tessera {

void PatientCallback::alone(const std::function<void()>& work) { work_alone(world_, work); }

void PatientCallback::on_lock(const std::string& path) {
  alone([&] { callback_.on_lock(path); });
}
void PatientCallback::on_start(const RunStart& start) {
  alone([&] { callback_.on_start(start); });
}
void PatientCallback::on_memory(const RunMemory& memory) {
  alone([&] { callback_.on_memory(memory); });
}
void PatientCallback::on_step(const StepRecord& record) {
  alone([&] { callback_.on_step(record); });
}
void PatientCallback::on_valid(std::int64_t step, double loss, const NamedMeans& means) {
  alone([&] { callback_.on_valid(step, loss, means); });
}
void PatientCallback::on_eval(const EvalRecord& record) {
  alone([&] { callback_.on_eval(record); });
}
void PatientCallback::on_test(const TestRecord& record) {
  alone([&] { callback_.on_test(record); });
}
void PatientCallback::on_sample(std::int64_t step, const std::string& text) {
  alone([&] { callback_.on_sample(step, text); });
}
void PatientCallback::on_save(std::int64_t step, const std::string& path) {
  alone([&] { callback_.on_save(step, path); });
}
void PatientCallback::on_profile(const std::string& path, const std::string& table) {
  alone([&] { callback_.on_profile(path, table); });
}
void PatientCallback::on_notice(const std::string& notice) {
  alone([&] { callback_.on_notice(notice); });
}

}  // namespace tessera
