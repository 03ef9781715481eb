/// The plugin's table, its errors and events.

#include <cstdlib>
#include <sstream>
#include <thread>

#include "pjrt/plugin/objects.h"

namespace tessera::pjrt {

namespace {

/// A Control is neither copied nor moved.
struct Steered {
  Control control;
  Steered() {
    const char* const words = std::getenv(kControlVariable);
    std::istringstream in(words == nullptr ? "" : words);
    for (std::string word; in >> word;) {
      const std::size_t at = std::min(word.find('='), word.size() - 1);
      const std::string name = word.substr(0, at), value = word.substr(at + 1);
      if (name == "fail_at") control.fail_at = value;
      if (name == "fail_code") control.fail_code = static_cast<c::Code>(std::stoi(value));
      if (name == "passing") control.passing = std::stoi(value);
      if (name == "once") control.once = value == "1";
      if (name == "abort_at") control.abort_at = value;
      if (name == "exit_at") control.exit_at = value;
      if (name == "keep_clients") control.keep_clients = value == "1";
      if (name == "devices") control.devices = std::stoi(value);
      if (name == "hold") control.hold = value == "1";
    }
  }
};

}  // namespace

Control& control() {
  static Steered steered;
  return steered.control;
}

}  // namespace tessera::pjrt

namespace tessera::pjrt::c {

namespace {

Api table;

void destroy_error(ErrorDestroy* of) { delete of->of; }
void message(ErrorMessage* of) { of->answer = said(of->of->message); }
Error* code(ErrorGetCode* of) {
  of->answer = of->of->code;
  return nullptr;
}

Error* initialize(PluginInitialize*) { return nullptr; }
Error* attributes(PluginAttributes* of) {
  of->attributes = control().attributes;
  return nullptr;
}

Error* destroy_event(EventDestroy* of) {
  delete of->of;
  return nullptr;
}
bool is_over(const Work& work) {
  const bool held = control().hold || control().hold_device == work.device;
  return !work.of_execution || (!held && std::chrono::steady_clock::now() >= work.ready);
}
void wait_for(const Work& work) {
  while (!is_over(work)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
Error* failure_of(const Work& work) {
  if (!work.of_execution || work.device != control().fail_device) return nullptr;
  return error(Code::Internal, "device " + std::to_string(work.device) + " fell off the bus");
}
Error* await(EventAwait* of) {
  wait_for(of->of->work);
  return failure_of(of->of->work);
}
/// The event may be destroyed meanwhile.
Error* on_ready(EventOnReady* of) {
  const auto tell = [work = of->event->work, told = of->listener, user = of->listener_user] {
    wait_for(work);
    told(failure_of(work), user);
  };
  if (is_over(of->event->work)) {
    tell();
  } else {
    std::thread(tell).detach();
  }
  return nullptr;
}

}  // namespace

Error* refuse(Call call, std::size_t size, std::size_t least) {
  if (size < least) {
    return error(Code::InvalidArgument, std::string(name_of(call)) + ": struct_size is too small");
  }
  Control& steer = control();
  if (steer.abort_at == name_of(call)) std::abort();
  if (steer.exit_at == name_of(call)) std::exit(3);
  if (steer.fail_at != name_of(call) || steer.passing-- > 0) return nullptr;
  if (steer.once) steer.fail_at.clear();
  ++steer.failed;
  return error(steer.fail_code, steer.message);
}

}  // namespace tessera::pjrt::c

extern "C" {

__attribute__((visibility("default"))) tessera::pjrt::Control* tessera_test_control();
tessera::pjrt::Control* tessera_test_control() {
  using namespace tessera::pjrt::c;
  if (tessera::pjrt::control().api == nullptr) {
    table.head.size = sizeof table;
    table.version = {{sizeof(Version), nullptr}, 0, 106};
    const auto place = [](Call call) -> std::size_t { return static_cast<std::size_t>(call); };
    table.calls[place(Call::ErrorDestroy)] = reinterpret_cast<void (*)()>(destroy_error);
    table.calls[place(Call::ErrorMessage)] = reinterpret_cast<void (*)()>(message);
    add<code>(table);
    add<initialize>(table);
    add<attributes>(table);
    add<destroy_event>(table);
    add<await>(table);
    add<on_ready>(table);
    add_client_calls(table);
    add_buffer_calls(table);
    add_program_calls(table);
    tessera::pjrt::control().api = &table;
  }
  return &tessera::pjrt::control();
}

__attribute__((visibility("default"))) const tessera::pjrt::c::Api* GetPjrtApi();
const tessera::pjrt::c::Api* GetPjrtApi() { return tessera_test_control()->api; }

}  // extern "C"
