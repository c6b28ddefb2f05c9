// The named query `step_breakdown`: where the time of each step goes, on the host and on the
// device.
//
// A step lasts from the end of the step before it to its own end; the first one begins with its
// first call. On the host each moment counts once, for the first of these that a thread of the
// process is in: loading data (the range that PyTorch's DataLoader makes), waiting for the device,
// a copy between host and device, an operator that computes on the host, issuing work. The rest is
// the program itself: Python and the framework between calls. So the columns add up to the step. Of
// intervals in order of their begin, those of the first k kinds together cover, beyond what was
// covered, what lies after the greatest end so far of these kinds.
//
// A step is one process's: that of the range which marks it, else the only one that used a device,
// else the first one with calls in it. The calls of others, such as workers that load data, lie
// between by time alone.
//
// The threads of the program are those that call operators of PyTorch. Where there are such,
// another thread of the process only launches for them, and what it does beside Python is told
// apart. Where no leaf of PyTorch was recorded, all threads are the program's.
//
// On the device copying is what copies add to the time of computing. A device is idle for the
// host's sake where the call that ended the idle time began after the device had nothing left to
// do.
#pragma once

namespace acltape::storage {

inline constexpr char kStepBreakdown[] = R"sql(
WITH base AS (SELECT CAST(value AS INTEGER) AS ns FROM meta WHERE key = 'base_ns'
), marked AS MATERIALIZED (
  SELECT r.first_call, r.last_call, min(t.process_id) AS process_id
  FROM scope_range r JOIN thread t ON t.thread_id = r.thread_id GROUP BY r.first_call, r.last_call
), owner AS MATERIALIZED (
  SELECT s.step, s.first_call, s.last_call, CASE
    WHEN m.process_id IS NOT NULL THEN m.process_id
    WHEN (SELECT count(DISTINCT process_id) FROM stream) = 1 THEN (SELECT min(process_id) FROM stream)
    ELSE (SELECT min(t.process_id) FROM call_row c JOIN thread t ON t.thread_id = c.thread_id
      WHERE c.call_id BETWEEN s.first_call AND s.last_call) END AS process_id,
    lag(s.last_call, 1, s.first_call - 1) OVER (ORDER BY s.first_call) + 1 AS from_call
  FROM step s
  LEFT JOIN marked m ON m.first_call = s.first_call AND m.last_call = s.last_call
), bound AS MATERIALIZED (
  SELECT o.*, (SELECT ns FROM base) + min(c.begin_ns) AS begin_ns,
    (SELECT ns FROM base) + max(c.begin_ns + c.duration_ns) AS end_ns
  FROM owner o CROSS JOIN call_row c ON c.call_id BETWEEN o.first_call AND o.last_call
  JOIN thread t ON t.thread_id = c.thread_id AND t.process_id = o.process_id
  GROUP BY o.step
), span AS MATERIALIZED (
  SELECT b.*, min(begin_ns, lag(end_ns, 1, begin_ns) OVER (ORDER BY first_call)) AS from_ns
  FROM bound b
), range AS MATERIALIZED (
  SELECT r.begin_ns, r.end_ns, r.last_call, t.process_id
  FROM scope_range r JOIN scope s ON s.scope_id = r.scope_id AND s.name GLOB 'enumerate(DataLoader)*'
  JOIN thread t ON t.thread_id = r.thread_id
), kind AS MATERIALIZED (
  SELECT s.signature_id, o.dialect = 'aten' AS is_aten, CASE
    WHEN o.dialect = 'aten' AND EXISTS (
      SELECT 1 FROM barrier_op b WHERE b.op_id = o.op_id AND b.code IS NOT NULL) THEN 2
    WHEN o.name GLOB 'aclrtSynchronize*' OR o.name = 'aclmdlRIExecute' THEN 2
    WHEN o.name GLOB 'aclrtMemcpy*' THEN 3
    WHEN o.name IN ('aten::copy_', 'aten::_to_copy') THEN -3
    WHEN o.dialect GLOB 'acl*' THEN 5 ELSE 0 END AS kind
  FROM signature s JOIN op o ON o.op_id = s.op_id WHERE o.dialect <> 'autograd'
), torch_thread AS MATERIALIZED (
  SELECT DISTINCT c.thread_id FROM call_row c WHERE c.bits & 4
    AND c.signature_id IN (SELECT signature_id FROM kind WHERE is_aten)
), torch_process AS MATERIALIZED (
  SELECT DISTINCT t.process_id FROM torch_thread d JOIN thread t ON t.thread_id = d.thread_id
), interval AS (
  SELECT b.step, b.from_ns, max(b.from_ns, (SELECT ns FROM base) + c.begin_ns) AS begin_ns,
    min(b.end_ns, (SELECT ns FROM base) + c.begin_ns + c.duration_ns) AS end_ns,
    CASE
      WHEN t.process_id IN (SELECT process_id FROM torch_process)
        AND c.thread_id NOT IN (SELECT thread_id FROM torch_thread) THEN 7
      WHEN NOT k.is_aten AND k.kind <> 0 THEN k.kind
      WHEN c.bits >> 3 = 0 THEN 6
      WHEN c.bits >> 3 = 1 THEN 4
      WHEN k.kind = 2 THEN 2
      WHEN k.kind = -3 AND EXISTS (SELECT 1 FROM tensor_use u
        JOIN buffer_row m ON m.buffer_id = u.buffer_id
        WHERE u.call_id = c.call_id AND ifnull(m.flags, 0) >> 8 = 0) THEN 3
      ELSE 5 END AS kind
  FROM span b CROSS JOIN call_row c ON c.call_id BETWEEN b.from_call AND b.last_call
  JOIN thread t ON t.thread_id = c.thread_id AND t.process_id = b.process_id
  JOIN kind k ON k.signature_id = c.signature_id
  WHERE c.duration_ns > 0 AND (c.bits & 4 OR NOT k.is_aten)
  UNION ALL
  SELECT b.step, b.from_ns, max(b.from_ns, r.begin_ns), min(b.end_ns, r.end_ns), 1
  FROM span b JOIN range r ON r.begin_ns < b.end_ns AND r.end_ns > b.from_ns
    AND r.process_id = b.process_id
), covered AS (
  SELECT step, kind, begin_ns, end_ns, max(iif(kind <= 1, end_ns, from_ns)) OVER w AS m1,
    max(iif(kind <= 2, end_ns, from_ns)) OVER w AS m2,
    max(iif(kind <= 3, end_ns, from_ns)) OVER w AS m3,
    max(iif(kind <= 4, end_ns, from_ns)) OVER w AS m4,
    max(iif(kind <= 5, end_ns, from_ns)) OVER w AS m5,
    max(iif(kind <= 6, end_ns, from_ns)) OVER w AS m6, max(end_ns) OVER w AS m7
  FROM interval WHERE end_ns > begin_ns
  WINDOW w AS (PARTITION BY step ORDER BY begin_ns, end_ns
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), host AS MATERIALIZED (
  SELECT step, sum(iif(kind <= 1, max(0, end_ns - max(begin_ns, ifnull(m1, 0))), 0)) AS u1,
    sum(iif(kind <= 2, max(0, end_ns - max(begin_ns, ifnull(m2, 0))), 0)) AS u2,
    sum(iif(kind <= 3, max(0, end_ns - max(begin_ns, ifnull(m3, 0))), 0)) AS u3,
    sum(iif(kind <= 4, max(0, end_ns - max(begin_ns, ifnull(m4, 0))), 0)) AS u4,
    sum(iif(kind <= 5, max(0, end_ns - max(begin_ns, ifnull(m5, 0))), 0)) AS u5,
    sum(iif(kind <= 6, max(0, end_ns - max(begin_ns, ifnull(m6, 0))), 0)) AS u6,
    sum(max(0, end_ns - max(begin_ns, ifnull(m7, 0)))) AS u7
  FROM covered GROUP BY step
), work AS (
  SELECT d.call_id, d.begin_ns, d.end_ns, (SELECT ns FROM base) + c.begin_ns AS called_ns,
    c.signature_id IN (SELECT signature_id FROM kind WHERE kind = 3) AS is_copy,
    ifnull(s.process_id, 0) AS process_id, ifnull(s.device, 0) AS device
  FROM device_span d JOIN call_row c ON c.call_id = d.call_id
  LEFT JOIN stream s ON s.stream_id = d.stream_id
), piece AS MATERIALIZED (
  SELECT call_id, begin_ns, end_ns, called_ns, is_copy, max(end_ns) OVER w AS busy_until,
    max(iif(is_copy, NULL, end_ns)) OVER w AS computes_until
  FROM work WINDOW w AS (PARTITION BY process_id, device ORDER BY begin_ns, end_ns, call_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), device AS MATERIALIZED (
  SELECT b.step, sum(max(0, p.end_ns - max(p.begin_ns, ifnull(p.busy_until, 0)))) AS busy_ns,
    sum(iif(p.is_copy, 0, max(0, p.end_ns - max(p.begin_ns, ifnull(p.computes_until, 0)))))
      AS compute_ns,
    sum(iif(p.called_ns >= p.busy_until, max(0, p.begin_ns - p.busy_until), 0)) AS idle_host_ns,
    sum(iif(p.called_ns < p.busy_until, max(0, p.begin_ns - p.busy_until), 0)) AS idle_device_ns
  FROM span b CROSS JOIN piece p ON p.call_id BETWEEN b.from_call AND b.last_call
  GROUP BY b.step
)
SELECT b.step, b.end_ns - b.begin_ns AS wall_ns, b.begin_ns - b.from_ns AS before_ns,
  b.end_ns - b.from_ns AS step_ns,
  iif(EXISTS (SELECT 1 FROM range r WHERE r.process_id = b.process_id), ifnull(h.u1, 0), NULL)
    AS loading_ns,
  ifnull(h.u2 - h.u1, 0) AS waiting_ns, ifnull(h.u3 - h.u2, 0) AS copying_ns,
  ifnull(h.u4 - h.u3, 0) AS host_operators_ns, ifnull(h.u5 - h.u4, 0) AS issuing_ns,
  ifnull(h.u6 - h.u5, 0) AS place_not_known_ns,
  b.end_ns - b.from_ns - ifnull(h.u6, 0) AS program_ns,
  ifnull(h.u7 - h.u6, 0) AS launching_beside_ns, d.compute_ns AS device_compute_ns,
  d.busy_ns - d.compute_ns AS device_copy_ns, d.idle_host_ns AS device_idle_host_late_ns,
  d.idle_device_ns AS device_idle_waiting_ns
FROM span b LEFT JOIN host h ON h.step = b.step LEFT JOIN device d ON d.step = b.step
ORDER BY b.step)sql";

}  // namespace acltape::storage
