# Copies the headers of `source` to `destination`, where a header that includes another one names it
# as whoever uses the library does: "host/core/view.h" becomes <cfaa/core/view.h>. Those that turn
# structs into JSON (*_json.h) are the program's own, and so is the server.
file(GLOB_RECURSE headers RELATIVE "${source}" "${source}/*.h")
list(FILTER headers EXCLUDE REGEX "_json\\.h$|-inl\\.h$|^serve/")
foreach(header IN LISTS headers)
  file(READ "${source}/${header}" text)
  string(REGEX REPLACE "#include \"host/([^\"]*)\"" "#include <cfaa/\\1>" text "${text}")
  file(WRITE "${destination}/${header}" "${text}")
endforeach()
