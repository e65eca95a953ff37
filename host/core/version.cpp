#include "host/core/version.h"

namespace cfaa {

const char* version() {
  return CFAA_VERSION;
}

}  // namespace cfaa
