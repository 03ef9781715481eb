/// The plugin's table, its errors and events.

#include "pjrt/plugin/objects.h"

namespace tessera::pjrt {

Control& control() {
  static Control control;
  return control;
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
Error* await(EventAwait*) { return nullptr; }
Error* is_ready(EventIsReady* of) {
  of->answer = true;
  return nullptr;
}

}  // namespace

Error* refuse(Call call, std::size_t size, std::size_t least) {
  if (size < least) {
    return error(Code::InvalidArgument, std::string(name_of(call)) + ": struct_size is too small");
  }
  Control& steer = control();
  if (steer.fail_at != name_of(call) || steer.passing-- > 0) return nullptr;
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
    add<is_ready>(table);
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
