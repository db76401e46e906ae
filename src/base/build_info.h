#pragma once

namespace tutti {

// What this binary was built from; filled in at build time.
const char* build_version();
const char* build_commit();  // with "+changes" when the work tree was not clean
const char* build_type();
const char* build_compiler();
const char* build_torch();  // "libtorch 1.13.0", with its folder where it is not the system's

}  // namespace tutti
