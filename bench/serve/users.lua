-- For wrk: GET /recommend of one known user after another, drawn at random from users.tsv.
--   wrk -t1 -c8 -d30s --latency -s bench/serve/users.lua http://127.0.0.1:8080 -- data/target/users.tsv
local users = {}

function init(args)
  for line in io.lines(args[1]) do
    users[#users + 1] = line:match("^%d+\t([^\t]+)")
  end
end

function request()
  return wrk.format("GET", "/recommend?user=" .. users[math.random(#users)] .. "&top=10")
end
