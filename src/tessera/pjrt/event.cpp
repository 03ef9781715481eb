#include "tessera/pjrt/event.h"

#include "tessera/base/error.h"
#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt {

void Event::wait() const {
  if (!event_) return;
  auto await = c::arguments<c::EventAwait>();
  await.of = event_.get();
  try {
    c::call(event_.plugin(), await);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(error.with(text("while waiting for ", what_)));
  } catch (const Error& error) {
    throw error.with(text("while waiting for ", what_));
  }
}

bool Event::ready() const {
  return !event_ || c::get<c::EventIsReady>(event_.plugin(), event_.get());
}

}  // namespace tessera::pjrt
