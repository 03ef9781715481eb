#pragma once
/// Results and errors of functions of C, which live in their handles.

#include <functional>
#include <string>

namespace tessera {

/// What came of a call.
struct Kept {
  std::string result, error;  // JSON; empty: there is none
};

/// The code of `work`, which may set the result. What it throws becomes the error, and its exit
/// code is returned.
int kept(Kept& handle, const std::function<int()>& work) noexcept;

/// For other languages: null where it is empty.
inline const char* shown(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace tessera
