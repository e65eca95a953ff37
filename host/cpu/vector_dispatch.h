#pragma once

// Highway's choice of the best vector code at run time, for function templates: HWY_EXPORT knows
// plain functions only. Of a template `f` in HWY_NAMESPACE,
//
//   CFAA_VECTOR_DISPATCH(f<T>)(arguments)
//
// calls the instance that was compiled for this processor. In the part under HWY_ONCE.

#include "hwy/highway.h"

#define CFAA_VECTOR_DISPATCH(function)                                             \
  ([] {                                                                            \
    static constexpr decltype(&HWY_STATIC_DISPATCH(function)) kCompiledFor[] = {   \
        nullptr, HWY_CHOOSE_TARGET_LIST(function), HWY_CHOOSE_FALLBACK(function)}; \
    hwy::ChosenTarget& target = hwy::GetChosenTarget();                            \
    if (!target.IsInitialized()) target.Update(hwy::SupportedTargets());           \
    return kCompiledFor[target.GetIndex()];                                        \
  }())
