#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti predict`: what trained weights say of pictures and texts.
std::function<int()> add_predict_command(CLI::App& program);

}  // namespace tutti
