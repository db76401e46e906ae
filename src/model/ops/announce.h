#pragma once

#include <ATen/record_function.h>

/// First line of an operator that reads parameters through raw pointers: those who watch operators (profilers, and
/// engines that still have a parameter under way) see it as they see torch's own.
#define TUTTI_ANNOUNCE_OPERATOR(name, ...)              \
  const c10::IValue announced_inputs[] = {__VA_ARGS__}; \
  RECORD_FUNCTION(name, c10::ArrayRef<const c10::IValue>(announced_inputs))
