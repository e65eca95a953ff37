#include "host/text/byte_classes.h"

namespace cfaa {
namespace {

#include "host/text/tables/bytelevel_tables.inc"

}  // namespace

const CodePointTable<ByteClass>& byte_classes() {
  static const CodePointTable<ByteClass> table = [] {
    CodePointTable<ByteClass> t;
    t.assign(k_letter, ByteClass::kLetter);
    t.assign(k_number, ByteClass::kNumber);
    t.assign(k_space, ByteClass::kSpace);
    return t;
  }();
  return table;
}

}  // namespace cfaa
