#include "tessera/pjrt/event.h"

#include <memory>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt {

namespace {

/// Calls `work`; its errors say what was waited for.
template <typename Work>
void while_waiting(std::string_view what, const Work& work) {
  try {
    work();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(error.with(text("while waiting for ", what)));
  } catch (const Error& error) {
    throw error.with(text("while waiting for ", what));
  }
}

struct WaitingListener {
  const Plugin* plugin;
  std::string_view what;
  Event::Listener listener;
};

/// Called by the plugin, once.
void tell_listener(c::Error* error, void* user) {
  const std::unique_ptr<WaitingListener> waiting(static_cast<WaitingListener*>(user));
  std::exception_ptr failure;
  try {
    if (error != nullptr) {
      while_waiting(waiting->what,
                    [&] { c::fail_call(*waiting->plugin, c::Call::EventOnReady, error); });
    }
  } catch (...) {
    failure = std::current_exception();
  }
  waiting->listener(std::move(failure));
}

}  // namespace

void Event::wait() const {
  if (!event_) return;
  auto await = c::arguments<c::EventAwait>();
  await.of = event_.get();
  while_waiting(what_, [&] { c::call(event_.plugin(), await); });
}

void Event::tell(Listener listener) const {
  if (!event_) return listener(nullptr);
  auto waiting = std::make_unique<WaitingListener>(
      WaitingListener{&event_.plugin(), what_, std::move(listener)});
  auto on_ready = c::arguments<c::EventOnReady>();
  on_ready.event = event_.get();
  on_ready.listener = tell_listener;
  on_ready.listener_user = waiting.get();
  while_waiting(what_, [&] { c::call(event_.plugin(), on_ready); });
  static_cast<void>(waiting.release());  // tell_listener's, which may have run
}

}  // namespace tessera::pjrt
