#include "tessera/base/error.h"

namespace tessera {

Error::Error(Fault fault, const std::string& message)
    : std::runtime_error(message), fault_(fault) {}

Error Error::with(const std::string& line) const {
  return Error(fault_, std::string(what()) + "\n    " + line);
}

Broken::Broken(const std::string& message)
    : Error(Fault::Internal,
            "internal error: " + message + "; please report this with the command") {}

void fail_with(Fault fault, std::initializer_list<TextPart> parts) {
  if (fault == Fault::Internal) throw Broken(text_of(parts));
  throw Error(fault, text_of(parts));
}

}  // namespace tessera
