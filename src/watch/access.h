#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// 128 random bits as text for a URL.
std::string new_token();
/// Why this cannot be a token; "" if it can: at least eight letters, digits or . _ ~ -, which mean nothing in a URL or
/// a cookie.
std::string problem_of_token(std::string_view token);

/// The token that is kept in the file, so that pages which are open outlive a restart of the server. One is made where
/// there is none; it is kept where the folder can be written, readable by its owner alone.
std::string kept_token(const std::string& file);

/// Takes as long whatever `given` is, so that it cannot be guessed letter by letter.
bool is_token(std::string_view given, std::string_view token);

/// Whether connections to this address can only come from this machine.
bool is_loopback(std::string_view address);

/// Whether a Host header names this machine's loopback address. A web page of somebody else's could have a name that
/// leads here (DNS rebinding); its browser would still send that name.
bool names_loopback(std::string_view host_header);

/// The value of a cookie of a Cookie header; "" where there is none.
std::string cookie_of(std::string_view header, std::string_view name);

}  // namespace tutti
