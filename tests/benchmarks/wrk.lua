-- What wrk sends, and its summary as one line of JSON. The request comes by the environment.

local function read(path)
  local file = assert(io.open(path, "rb"))
  local content = file:read("*a")
  file:close()
  return content
end

local body = os.getenv("BENCH_BODY")
if body then
  wrk.method = "POST"
  wrk.body = read(body)
  wrk.headers["Content-Type"] = "application/json"
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "failed": %d, "p50_ms": %.4f, "p99_ms": %.4f}\n',
    summary.requests, summary.duration / 1e6, failed,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
