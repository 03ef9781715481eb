#pragma once
/// Something that a plugin does meanwhile.

#include <exception>
#include <functional>

#include "tessera/pjrt/handle.h"

namespace tessera::pjrt {

/// The end of a copy or of an execution. Destroying it waits for nothing.
class Event {
 public:
  Event() = default;  // of something that has ended
  /// `what` names the call in messages.
  Event(Handle<c::Event> event, std::string_view what) : event_(std::move(event)), what_(what) {}

  /// Waits. Errors: what happened meanwhile: a device that was lost, no memory, ...
  void wait() const;
  /// Called with what wait() would throw, or null. It throws nothing itself, and calls no plugin.
  using Listener = std::function<void(std::exception_ptr failure)>;
  /// Calls `listener` once when it has ended, on a thread of the plugin or here, even after the
  /// event is destroyed. Errors: of the call.
  void tell(Listener listener) const;

 private:
  Handle<c::Event> event_;
  std::string_view what_;
};

}  // namespace tessera::pjrt
