#include "tessera/c_api/kept.h"

#include <nlohmann/json.hpp>

#include "tessera/launch/exit_code.h"

namespace tessera {

namespace {

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::Usage: return "Usage";
    case Fault::Data: return "Data";
    case Fault::Checkpoint: return "Checkpoint";
    case Fault::Resource: return "Resource";
    case Fault::Numerics: return "Numerics";
    case Fault::Peer: return "Peer";
    case Fault::Internal: return "Internal";
  }
  return "Internal";
}

}  // namespace

int kept(Kept& handle, const std::function<int()>& work) noexcept {
  handle = {};
  try {
    return work();
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    const int code = static_cast<int>(failure.fault);
    using Object = nlohmann::ordered_json;
    handle.result.clear();
    handle.error =
        Object{{"kind", name_of(failure.fault)}, {"message", failure.message}, {"code", code}}.dump(
            -1, ' ', false, Object::error_handler_t::replace);
    return code;
  }
}

}  // namespace tessera
