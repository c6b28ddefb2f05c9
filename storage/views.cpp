// The views: what users query. They put back together what the tables intern, with the SQL of a
// stock sqlite3 3.40 and no extension.
//
// Three rules keep them usable on a hundred thousand calls. A view over calls starts from call_row
// (CROSS JOIN fixes that order), so that a range of call_id is a range of rows. Tables that only
// add columns are joined by LEFT JOIN on their primary key, which SQLite leaves out when the
// columns are not asked for. The step of a call is one look-up in the index of first calls.
//
// Views about a whole trace take the totals that it holds (stored_totals.h), and read the calls
// only where it holds none: a subquery of no row stands before call_row then.
//
// Chains of parents are followed down to smaller ids alone: a trace in which they lead back must
// not make a query endless.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "generated/meaning/interface_numbers.h"
#include "meaning/hccl_numbers.h"
#include "meaning/torch_operators.h"
#include "storage/database.h"
#include "storage/host_gaps.h"
#include "storage/nesting.h"
#include "storage/schema.h"
#include "storage/sql_text.h"

namespace acltape::storage {
namespace {

constexpr char kCallViews[] = R"sql(
CREATE VIEW call AS
SELECT c.call_id AS call_id, c.parent_id AS parent_id, s.op_id AS op_id,
  o.name || iif(o.overload = '', '', '.' || o.overload) AS op,
  c.thread_id AS thread_id, x.stream_id AS stream_id,
  (SELECT iif(t.last_call >= c.call_id, t.step, NULL) FROM step t
   WHERE t.first_call <= c.call_id ORDER BY t.first_call DESC LIMIT 1) AS step,
  CASE c.bits & 3 WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' ELSE 'optimizer' END AS phase,
  c.scope_id AS scope_id, ifnull(c.stack_id, x.stack_id) AS stack_id,
  c.begin_ns + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS begin_ns,
  c.begin_ns + c.duration_ns
    + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS end_ns,
  c.duration_ns AS duration_ns, x.prepare_ns AS prepare_ns, x.launch_ns AS launch_ns,
  ifnull(x.status, 0) AS status, x.model_id AS model_id, x.forward_call AS forward_call,
  (c.bits >> 2) & 1 AS leaf,
  iif(c.bits & 4, ifnull(nullif(c.bits >> 3, 0) - 1, (SELECT 1 + q.device FROM stream q
    WHERE q.stream_id = x.stream_id)), NULL) AS device,
  c.signature_id AS signature_id, ifnull(c.buffers, '[]') AS buffers
FROM call_row c CROSS JOIN signature s ON s.signature_id = c.signature_id
LEFT JOIN op o ON o.op_id = s.op_id
LEFT JOIN call_extra x ON x.call_id = c.call_id;

CREATE VIEW buffer AS
SELECT b.buffer_id AS buffer_id, ifnull(b.flags, 0) >> 8 AS device, b.address AS address,
  b.bytes AS bytes, b.alloc_call AS alloc_call, b.free_call AS free_call, r.pool AS pool,
  r.role AS role, ifnull(b.flags, 0) & 1 AS is_foreign,
  CASE b.flags & 6 WHEN 2 THEN 'block' WHEN 4 THEN 'tensor' END AS layer, b.block AS block,
  b.alloc_ns + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS alloc_ns,
  b.alloc_ns + b.life_ns
    + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS free_ns
FROM buffer_row b LEFT JOIN buffer_role r ON r.buffer_id = b.buffer_id;

CREATE VIEW argument AS
SELECT c.call_id AS call_id, a.position AS position, a.name AS name, a.direction AS direction,
  a.kind AS kind,
  ifnull(json_extract(c.buffers, '$[' || a.slot || ']'), 0) << 24 | a.layout_id AS tensor_id,
  iif(a.kind = 'scalar' AND a.text GLOB '*float*', NULL, a.integer) AS integer, a.real AS real,
  a.text AS text,
  CASE a.kind WHEN 'tensor_list' THEN
    (SELECT json_group_array(
       iif(json_extract(e.value, '$[0]') < 0, 0,
         ifnull(json_extract(c.buffers, '$[' || json_extract(e.value, '$[0]') || ']'), 0)) << 24
       | json_extract(e.value, '$[1]'))
     FROM json_each(a.list) e)
  ELSE a.list END AS list,
  json_extract(c.buffers, '$[' || a.slot || ']') AS buffer_id, a.layout_id AS layout_id,
  l.dtype AS dtype, l.shape AS shape
FROM call_row c CROSS JOIN signature_argument a ON a.signature_id = c.signature_id
LEFT JOIN layout l ON l.layout_id = a.layout_id;

-- One row for each tensor that an argument is or holds.
CREATE VIEW tensor_use AS
SELECT c.call_id AS call_id, a.position AS position, a.name AS name, a.direction AS direction,
  0 AS element, ifnull(json_extract(c.buffers, '$[' || a.slot || ']'), 0) AS buffer_id,
  a.layout_id AS layout_id, c.signature_id AS signature_id, (c.bits >> 2) & 1 AS leaf
FROM call_row c CROSS JOIN signature_argument a ON a.signature_id = c.signature_id
WHERE a.kind = 'tensor' AND a.layout_id IS NOT NULL
UNION ALL
SELECT c.call_id, a.position, a.name, a.direction, e.key,
  iif(json_extract(e.value, '$[0]') < 0, 0,
    ifnull(json_extract(c.buffers, '$[' || json_extract(e.value, '$[0]') || ']'), 0)),
  json_extract(e.value, '$[1]'), c.signature_id, (c.bits >> 2) & 1
FROM call_row c CROSS JOIN signature_argument a ON a.signature_id = c.signature_id
CROSS JOIN json_each(a.list) e
WHERE a.kind = 'tensor_list' AND json_extract(e.value, '$[1]') > 0;

CREATE VIEW tensor AS
SELECT u.buffer_id << 24 | u.layout_id AS tensor_id, u.buffer_id AS buffer_id,
  l.byte_offset AS byte_offset, l.dtype AS dtype, l.shape AS shape, l.strides AS strides,
  l.format AS format, l.flags AS flags, l.layout_id AS layout_id, l.memory AS memory
FROM (SELECT DISTINCT buffer_id, layout_id FROM tensor_use) u
JOIN layout l ON l.layout_id = u.layout_id;
)sql";

// The work of the device, in recordings with its times.
constexpr char kDeviceViews[] = R"sql(
-- The device's time for each call, and for each call of PyTorch whose kernel launched the work. A
-- stream that idled was ready before the host had launched: then launching is part of the time, and
-- it is not exact.
CREATE VIEW device_time AS
WITH span AS (
  SELECT d.call_id AS call_id, c.parent_id AS parent_id, d.begin_ns AS begin_ns,
    d.end_ns AS end_ns, d.begin_ns >= c.begin_ns + c.duration_ns
      + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS exact
  FROM device_span d CROSS JOIN call_row c ON c.call_id = d.call_id)
SELECT call_id, count(*) AS tasks, sum(end_ns - begin_ns) AS device_ns, min(begin_ns) AS begin_ns,
  max(end_ns) AS end_ns, min(exact) AS exact
FROM span GROUP BY call_id
UNION ALL
SELECT a.call_id, count(*), sum(s.end_ns - s.begin_ns), min(s.begin_ns), max(s.end_ns),
  min(s.exact)
FROM span s CROSS JOIN call_row a ON a.call_id = s.parent_id
JOIN signature n ON n.signature_id = a.signature_id
JOIN op o ON o.op_id = n.op_id AND o.dialect = 'aten'
GROUP BY a.call_id;

-- Each piece of work with the end of what ran before it, `idle_from`: on its stream, and, with
-- stream_id NULL, on its device.
CREATE VIEW device_work AS
WITH span AS (
  SELECT s.process_id AS process_id, ifnull(s.device, 0) AS device, d.stream_id AS stream_id,
    d.call_id AS call_id, d.begin_ns AS begin_ns, d.end_ns AS end_ns
  FROM device_span d LEFT JOIN stream s ON s.stream_id = d.stream_id)
SELECT process_id, device, stream_id, stream_id AS on_stream, call_id, begin_ns, end_ns,
  max(end_ns) OVER (PARTITION BY stream_id ORDER BY begin_ns, end_ns, call_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS idle_from
FROM span
UNION ALL
SELECT process_id, device, NULL, stream_id, call_id, begin_ns, end_ns,
  max(end_ns) OVER (PARTITION BY process_id, device ORDER BY begin_ns, end_ns, call_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
FROM span;

-- The use of each device and of each of its streams, from its first work to its last.
CREATE VIEW device_use AS
SELECT process_id, device, stream_id, count(*) AS tasks, sum(busy_ns) AS busy_ns,
  sum(idle_ns) AS idle_ns,
  round(100.0 * sum(idle_ns) / nullif(sum(busy_ns) + sum(idle_ns), 0), 2) AS idle_percent,
  max(idle_ns) AS longest_idle_ns, sum(launch_ns) AS launch_ns, min(begin_ns) AS begin_ns,
  max(end_ns) AS end_ns
FROM (SELECT w.process_id AS process_id, w.device AS device, w.stream_id AS stream_id,
        w.begin_ns AS begin_ns, w.end_ns AS end_ns,
        max(0, w.end_ns - max(w.begin_ns, ifnull(w.idle_from, w.begin_ns))) AS busy_ns,
        max(0, w.begin_ns - ifnull(w.idle_from, w.begin_ns)) AS idle_ns,
        max(0, min(w.end_ns, c.begin_ns + c.duration_ns
          + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns')) - w.begin_ns)
          AS launch_ns
      FROM device_work w LEFT JOIN call_row c ON c.call_id = w.call_id)
GROUP BY process_id, device, stream_id
ORDER BY process_id, device, stream_id;
)sql";

constexpr char kAnalysisViews[] = R"sql(
CREATE VIEW top_ops AS
SELECT o.name || iif(o.overload = '', '', '.' || o.overload) AS op, o.dialect AS dialect,
  sum(t.calls) AS calls, sum(t.total_ns) AS total_ns, sum(t.total_ns) / sum(t.calls) AS mean_ns,
  min(t.min_ns) AS min_ns, max(t.max_ns) AS max_ns,
  round(100.0 * sum(t.total_ns) / nullif(sum(sum(t.total_ns)) OVER (), 0), 2) AS percent,
  count(*) AS signatures, sum(v.device_ns) AS device_ns,
  sum(v.device_ns) / sum(v.calls) AS device_mean_ns,
  round(100.0 * sum(v.device_ns) / nullif(sum(sum(v.device_ns)) OVER (PARTITION BY o.dialect), 0),
    2) AS device_percent
FROM (SELECT signature_id, leaves AS calls, total_ns, min_ns, max_ns FROM signature_total
      WHERE leaves > 0
      UNION ALL
      SELECT c.signature_id, count(*), sum(c.duration_ns), min(c.duration_ns), max(c.duration_ns)
      FROM (SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM signature_total)) CROSS JOIN call_row c
      WHERE c.bits & 4 GROUP BY c.signature_id) t
LEFT JOIN (SELECT c.signature_id AS signature_id, count(*) AS calls, sum(d.device_ns) AS device_ns
           FROM device_time d CROSS JOIN call_row c ON c.call_id = d.call_id
           GROUP BY c.signature_id) v ON v.signature_id = t.signature_id
JOIN signature s ON s.signature_id = t.signature_id
JOIN op o ON o.op_id = s.op_id
GROUP BY o.op_id
ORDER BY total_ns DESC, op;

-- A leaf that ends no later than one before it lies inside of that one, and bounds no gap.
CREATE VIEW host_gaps AS
@gaps of@ call_row @between leaves@
ORDER BY gap_ns DESC, after_call;

CREATE VIEW longest_host_gaps AS
SELECT g.gap_ns AS gap_ns, g.thread_id AS thread_id, g.after_call AS after_call,
  g.before_call AS before_call,
  (SELECT o.name FROM signature s JOIN op o ON o.op_id = s.op_id
   WHERE s.signature_id = a.signature_id) AS after_op,
  (SELECT o.name FROM signature s JOIN op o ON o.op_id = s.op_id
   WHERE s.signature_id = b.signature_id) AS before_op,
  (SELECT iif(t.last_call >= g.after_call, t.step, NULL) FROM step t
   WHERE t.first_call <= g.after_call ORDER BY t.first_call DESC LIMIT 1) AS step,
  a.begin_ns + a.duration_ns
    + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS begin_ns
FROM host_gap g JOIN call_row a ON a.call_id = g.after_call
JOIN call_row b ON b.call_id = g.before_call
UNION ALL
SELECT * FROM (@gaps of@ (SELECT 1 WHERE NOT EXISTS
    (SELECT 1 FROM table_total WHERE table_name = 'call_row')) CROSS JOIN call_row @between leaves@
  ORDER BY gap_ns DESC, after_call LIMIT @most gaps@)
ORDER BY gap_ns DESC, after_call;

-- Operators that end a captured region wherever they are met: those of barrier_rule, and those of
-- extensions, of which nobody knows what they do.
CREATE VIEW barrier_op AS
SELECT o.op_id AS op_id, r.code AS code, r.reason AS reason
FROM op o JOIN barrier_rule r
  ON o.name GLOB r.op_name OR o.name || '.' || o.overload GLOB r.op_name
UNION ALL
SELECT o.op_id, NULL, 'unknown operator: what an extension does is not known'
FROM op o
WHERE o.dialect = 'aten' AND substr(o.name, 1, instr(o.name, '::') - 1) NOT IN (@known namespaces@)
  AND NOT EXISTS (SELECT 1 FROM barrier_rule r WHERE o.name GLOB r.op_name);

CREATE VIEW capture_breaks AS
SELECT c.call_id AS call_id,
  (SELECT iif(t.last_call >= c.call_id, t.step, NULL) FROM step t
   WHERE t.first_call <= c.call_id ORDER BY t.first_call DESC LIMIT 1) AS step,
  k.op AS op, k.code AS code, k.reason AS reason, c.duration_ns AS duration_ns
FROM call_row c CROSS JOIN (
  SELECT s.signature_id AS signature_id,
    o.name || iif(o.overload = '', '', '.' || o.overload) AS op, r.code AS code,
    r.reason AS reason
  FROM barrier_op r JOIN op o ON o.op_id = r.op_id JOIN signature s ON s.op_id = o.op_id
  UNION ALL
  SELECT s.signature_id, o.name || iif(o.overload = '', '', '.' || o.overload), @code of masks@,
    '@reason of masks@'
  FROM op o JOIN signature s ON s.op_id = o.op_id
  WHERE o.name IN (@operators with masks@)
    AND EXISTS (SELECT 1 FROM signature_argument a, json_each(a.list) e, layout l
      WHERE a.signature_id = s.signature_id AND a.kind = 'tensor_list'
        AND l.layout_id = json_extract(e.value, '$[1]') AND l.dtype IN ('bool', 'uint8'))
) k ON k.signature_id = c.signature_id
WHERE (c.bits & 4 OR k.op LIKE 'acl%')
  AND (c.bits >> 3 <> 1 OR NOT EXISTS (SELECT 1 FROM call_row WHERE bits >= @first device bits@))
UNION ALL
SELECT c.call_id, c.step, c.op, @code of copies@,
  'copy between device ' || s.device || ' and device ' || d.device, c.duration_ns
FROM call c
JOIN argument ds ON ds.call_id = c.call_id AND ds.direction <> 'in' AND ds.kind = 'tensor'
JOIN argument sr ON sr.call_id = c.call_id AND sr.direction = 'in' AND sr.kind = 'tensor'
JOIN buffer d ON d.buffer_id = ds.buffer_id
JOIN buffer s ON s.buffer_id = sr.buffer_id
WHERE c.signature_id IN (SELECT s.signature_id FROM signature s JOIN op o ON o.op_id = s.op_id
                         WHERE o.name IN (@copies between devices@))
  AND (SELECT max(ifnull(flags, 0) >> 8) FROM buffer_row) > 0
  AND c.leaf = 1 AND d.device <> s.device;

-- Operators whose result shares the buffer of an argument and writes nothing.
CREATE VIEW view_op AS
SELECT op_id FROM op
WHERE instr(substr(schema, instr(schema, '->')), '(a') > 0
    AND instr(substr(schema, instr(schema, '->')), '!') = 0
  OR name IN (@unmarked views@);

CREATE VIEW tensor_flow AS
SELECT u.buffer_id AS buffer_id, u.call_id AS call_id,
  o.name || iif(o.overload = '', '', '.' || o.overload) AS op, u.position AS position,
  u.name AS name, u.direction AS direction,
  CASE u.direction WHEN 'in' THEN 'consumer' WHEN 'inout' THEN 'both'
    ELSE iif(u.is_view, 'view', 'producer') END AS part,
  u.written_by AS written_by, u.buffer_id << 24 | u.layout_id AS tensor_id, l.dtype AS dtype,
  l.shape AS shape
FROM (SELECT call_id, position, name, direction, buffer_id, layout_id, signature_id, is_view,
        max(iif(direction = 'in' OR is_view, NULL, call_id)) OVER (PARTITION BY buffer_id
          ORDER BY call_id GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS written_by
      FROM (SELECT *, direction = 'out' AND signature_id IN (
              SELECT signature_id FROM signature WHERE op_id IN (SELECT op_id FROM view_op))
              AS is_view
            FROM tensor_use WHERE leaf = 1 AND buffer_id > 0)) u
JOIN signature s ON s.signature_id = u.signature_id
JOIN op o ON o.op_id = s.op_id
LEFT JOIN layout l ON l.layout_id = u.layout_id;

-- The innermost frame of the user's own code. Stacks without one have no row.
CREATE VIEW stack_location AS
SELECT stack_id, json_extract(frames, at || '.file') AS file,
  json_extract(frames, at || '.line') AS line, json_extract(frames, at || '.function') AS function
FROM (SELECT stack_id, frames, '$[' || ifnull(user_frame, 0) || ']' AS at FROM stack
      WHERE ifnull(user_frame, 0) >= 0);

-- Where each operator of the device comes from: the call of PyTorch whose kernel launched it, the
-- module around that, and the line of the program. Backward work has the module and the line of the
-- forward leaf whose gradient it computes.
CREATE VIEW device_call_origin AS
WITH launched AS (
  SELECT c.call_id AS call_id, c.op AS op, c.step AS step, c.stream_id AS stream_id,
    c.model_id AS model_id, c.scope_id AS scope_id, c.stack_id AS stack_id,
    a.call_id AS aten_call, a.op AS aten_op, a.phase AS phase, a.scope_id AS aten_scope,
    (WITH RECURSIVE up(call_id, parent_id, dialect, depth) AS (
       SELECT u.call_id, u.parent_id, o.dialect, 0 FROM call u JOIN op o USING (op_id)
       WHERE u.call_id = a.parent_id
       UNION ALL
       SELECT u.call_id, u.parent_id, o.dialect, depth + 1
       FROM up JOIN call u ON u.call_id = up.parent_id
         AND u.call_id < up.call_id AND up.depth < @most around@
       JOIN op o USING (op_id))
     SELECT call_id FROM up WHERE dialect = 'autograd' LIMIT 1) AS node
  FROM call c JOIN op o ON o.op_id = c.op_id
  LEFT JOIN (SELECT a.* FROM call a JOIN op n ON n.op_id = a.op_id WHERE n.dialect = 'aten') a
    ON a.call_id = c.parent_id
  WHERE o.dialect = 'aclnn' AND c.leaf = 1),
followed AS (
  SELECT l.*, n.op AS backward_node, n.forward_call AS forward_call, f.scope_id AS forward_scope,
    coalesce(l.stack_id, (SELECT d.stack_id FROM call_row d WHERE d.call_id = n.forward_call),
      (SELECT d.stack_id FROM call_row d WHERE d.parent_id = n.forward_call
         AND d.stack_id IS NOT NULL LIMIT 1)) AS place
  FROM launched l LEFT JOIN call n ON n.call_id = l.node
  LEFT JOIN call f ON f.call_id = n.forward_call)
SELECT call_id, op, step, stream_id, model_id, aten_call, aten_op, phase, backward_node,
  forward_call,
  (WITH RECURSIVE up(scope_id, parent_id, kind, path) AS (
     SELECT scope_id, parent_id, kind, path FROM scope
     WHERE scope_id = coalesce(w.forward_scope, w.aten_scope, w.scope_id)
     UNION ALL
     SELECT s.scope_id, s.parent_id, s.kind, s.path FROM up JOIN scope s
       ON s.scope_id = up.parent_id AND s.scope_id < up.scope_id)
   SELECT path FROM up WHERE kind = 'module' LIMIT 1) AS module,
  k.file AS file, k.line AS line, k.function AS function
FROM followed w LEFT JOIN stack_location k ON k.stack_id = w.place;

-- Where each call comes from in the source of the program. Backward work comes from the line of the
-- forward leaf whose gradient it computes, and `via` says so.
CREATE VIEW call_location AS
SELECT c.call_id AS call_id, k.file AS file, k.line AS line, k.function AS function,
  iif(f.stack_id IS NULL, 'own', 'forward') AS via
FROM call_row c
LEFT JOIN call_row f ON c.parent_id IS NOT NULL AND f.call_id = (
  WITH RECURSIVE up(call_id, depth) AS (
    SELECT c.parent_id, 0
    UNION ALL
    SELECT p.parent_id, depth + 1 FROM up JOIN call_row p ON p.call_id = up.call_id
    WHERE p.parent_id < p.call_id AND depth < @most around@)
  SELECT x.forward_call FROM up JOIN call_extra x ON x.call_id = up.call_id
  WHERE x.forward_call IS NOT NULL ORDER BY depth LIMIT 1)
JOIN stack_location k ON k.stack_id = ifnull(f.stack_id, c.stack_id);

-- The lines of the program on which the time of leaves is spent.
CREATE VIEW location_summary AS
SELECT l.file AS file, l.line AS line, l.function AS function, count(*) AS leaves,
  sum(c.duration_ns) AS total_ns,
  sum(iif(c.bits & 3 = 0, c.duration_ns, 0)) AS forward_ns,
  sum(iif(c.bits & 3 = 1, c.duration_ns, 0)) AS backward_ns,
  sum(iif(c.bits & 3 = 2, c.duration_ns, 0)) AS optimizer_ns
FROM call_row c CROSS JOIN call_location l ON l.call_id = c.call_id
WHERE c.bits & 4
GROUP BY l.file, l.line, l.function
ORDER BY total_ns DESC;

CREATE VIEW step_summary AS
SELECT t.step AS step, t.first_call AS first_call, t.last_call AS last_call,
  t.found_by AS found_by, x.calls AS calls, x.leaves AS leaves, x.wall_ns AS wall_ns,
  x.leaf_ns AS leaf_ns, x.signatures AS signatures, x.backward_leaves AS backward_leaves,
  x.breaks AS breaks
FROM step t JOIN step_total x ON x.step = t.step AND x.first_call = t.first_call
  AND x.last_call = t.last_call
UNION ALL
SELECT t.step, t.first_call, t.last_call, t.found_by, count(c.call_id), sum(c.bits >> 2 & 1),
  max(c.begin_ns + c.duration_ns) - min(c.begin_ns),
  sum(iif(c.bits & 4, c.duration_ns, 0)),
  count(DISTINCT iif(c.bits & 4, c.signature_id, NULL)),
  sum(iif(c.bits & 4 AND c.bits & 3 = 1, 1, 0)),
  sum(iif(c.bits & 4 AND s.op_id IN (SELECT op_id FROM barrier_op)
    AND (c.bits >> 3 <> 1 OR NOT EXISTS (SELECT 1 FROM call_row WHERE bits >= @first device bits@)),
    1, 0))
FROM step t
LEFT JOIN call_row c ON c.call_id BETWEEN t.first_call AND t.last_call
LEFT JOIN signature s ON s.signature_id = c.signature_id
WHERE NOT EXISTS (SELECT 1 FROM step_total x WHERE x.step = t.step
  AND x.first_call = t.first_call AND x.last_call = t.last_call)
GROUP BY t.step
ORDER BY step;
)sql";

// The collectives of HCCL. What a call says of itself is in its signature; equal calls share it. A
// captured call has no number among those that ran: the executions of its graph repeat it. A batch
// of messages has a row for each of them; meaning/hccl_numbers.h says what a trace keeps of one.
constexpr char kRankViews[] = R"sql(
CREATE VIEW collective AS
WITH said AS (
  SELECT a.signature_id AS signature_id,
    max(iif(a.name = 'comm', a.integer, NULL)) AS communicator_id,
    max(iif(a.name IN ('count', 'sendCount', 'recvCount'), a.integer, NULL)) AS count,
    max(iif(a.name IN ('dataType', 'sendType'), a.integer, NULL)) AS dtype,
    max(iif(a.name = 'op', a.integer, NULL)) AS reduction,
    max(iif(a.name = 'root', a.integer, NULL)) AS root,
    max(iif(a.name = 'sendCountMatrix', a.list, NULL)) AS matrix,
    max(iif(a.name IN ('destRank', 'srcRank'), a.integer, NULL)) AS peer,
    max(iif(a.name IN ('sendBuf', 'buf'), json_extract(l.shape, '$[0]'), NULL)) AS sent_bytes,
    max(iif(a.name IN ('recvBuf', 'buf'), json_extract(l.shape, '$[0]'), NULL)) AS received_bytes
  FROM op o JOIN signature s ON s.op_id = o.op_id
  JOIN signature_argument a ON a.signature_id = s.signature_id
  LEFT JOIN layout l ON l.layout_id = a.layout_id
  WHERE o.dialect = 'hccl' AND o.name <> 'HcclGetCommName' GROUP BY a.signature_id),
part AS (
  SELECT a.signature_id AS signature_id, e.key / 4 AS item,
    max(iif(e.key % 4 = 0, iif(e.value = 0, 'send', 'recv'), NULL)) AS message,
    max(iif(e.key % 4 = 1, e.value, NULL)) AS count,
    max(iif(e.key % 4 = 2, e.value, NULL)) AS dtype,
    max(iif(e.key % 4 = 3, e.value, NULL)) AS peer
  FROM op o JOIN signature s ON s.op_id = o.op_id
  JOIN signature_argument a ON a.signature_id = s.signature_id AND a.name = 'sendRecvInfo'
  JOIN json_each(iif(a.kind = 'int_list', a.list, '[]')) e
  WHERE o.name = 'HcclBatchSendRecv' GROUP BY a.signature_id, e.key / 4),
memory AS (
  SELECT a.signature_id AS signature_id, e.key AS item, json_extract(l.shape, '$[0]') AS bytes
  FROM op o JOIN signature s ON s.op_id = o.op_id
  JOIN signature_argument a ON a.signature_id = s.signature_id AND a.kind = 'tensor_list'
  JOIN json_each(a.list) e JOIN layout l ON l.layout_id = json_extract(e.value, '$[1]')
  WHERE o.name = 'HcclBatchSendRecv')
SELECT c.call_id AS call_id, m.process_id AS process_id, m.name AS communicator, m.rank AS rank,
  m.ranks AS ranks, d.communicator_id AS communicator_id,
  row_number() OVER (PARTITION BY d.communicator_id, x.model_id,
    d.peer IS NULL AND o.name <> 'HcclBatchSendRecv' ORDER BY c.call_id, p.item) AS number,
  o.name AS op, ifnull(p.count, d.count) AS count,
  CASE ifnull(p.dtype, d.dtype) @dtypes of ranks@ END AS dtype,
  CASE d.reduction @reductions of ranks@ END AS reduction, d.root AS root, d.matrix AS matrix,
  CASE o.name WHEN 'HcclSend' THEN 'send' WHEN 'HcclRecv' THEN 'recv' ELSE p.message END AS message,
  ifnull(p.peer, d.peer) AS peer, p.item AS item,
  iif(p.message = 'send', w.bytes, d.sent_bytes) AS sent_bytes,
  iif(p.message = 'recv', w.bytes, d.received_bytes) AS received_bytes, x.stream_id AS stream_id,
  x.model_id AS model_id, ifnull(x.status, 0) AS status, c.parent_id AS parent_id,
  (SELECT iif(t.last_call >= c.call_id, t.step, NULL) FROM step t
   WHERE t.first_call <= c.call_id ORDER BY t.first_call DESC LIMIT 1) AS step,
  c.begin_ns + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS begin_ns,
  c.begin_ns + c.duration_ns
    + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS end_ns
FROM said d CROSS JOIN call_row c ON c.signature_id = d.signature_id
JOIN signature s ON s.signature_id = c.signature_id
JOIN op o ON o.op_id = s.op_id
LEFT JOIN part p ON p.signature_id = d.signature_id
LEFT JOIN memory w ON w.signature_id = d.signature_id AND w.item = p.item
LEFT JOIN communicator m ON m.communicator_id = d.communicator_id
LEFT JOIN call_extra x ON x.call_id = c.call_id;
)sql";

// All gaps between the leaves of a table, which stands between both texts: what two views share.
constexpr char kGapsOf[] = R"sql(SELECT g.gap_ns AS gap_ns, g.thread_id AS thread_id,
  g.call_id AS after_call, g.next_call AS before_call,
  (SELECT o.name FROM signature s JOIN op o ON o.op_id = s.op_id
   WHERE s.signature_id = g.signature_id) AS after_op,
  (SELECT o.name FROM signature s JOIN op o ON o.op_id = s.op_id
   WHERE s.signature_id = g.next_signature) AS before_op,
  (SELECT iif(t.last_call >= g.call_id, t.step, NULL) FROM step t
   WHERE t.first_call <= g.call_id ORDER BY t.first_call DESC LIMIT 1) AS step,
  g.end_ns + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns') AS begin_ns
FROM (SELECT call_id, thread_id, signature_id, end_ns,
        lead(begin_ns) OVER w - end_ns AS gap_ns,
        lead(call_id) OVER w AS next_call, lead(signature_id) OVER w AS next_signature
      FROM (SELECT call_id, thread_id, signature_id, begin_ns, begin_ns + duration_ns AS end_ns,
              max(begin_ns + duration_ns) OVER (PARTITION BY thread_id ORDER BY begin_ns, call_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until
            FROM)sql";
constexpr char kBetweenLeaves[] = R"sql(WHERE bits & 4)
      WHERE busy_until IS NULL OR end_ns > busy_until
      WINDOW w AS (PARTITION BY thread_id ORDER BY begin_ns, call_id)) g
WHERE g.next_call IS NOT NULL AND g.gap_ns > 0)sql";

// "'aten::index','aten::index_put'"
template <typename Rows, typename Name>
std::string SqlTexts(const Rows& rows, const Name& name) {
  std::string list;
  for (const auto& row : rows) {
    const std::string_view text = name(row);
    if (text.empty()) continue;
    if (!list.empty()) list += ',';
    list += SqlText(text);
  }
  return list;
}

// "WHEN 0 THEN 'int8' WHEN 1 THEN 'int16'"
std::string NamesOfDtypes() {
  std::string cases;
  for (const meaning::HcclDtype& row : meaning::kHcclDtypes) {
    cases += fmt::format(" WHEN {} THEN '{}'", row.number, row.name);
  }
  return cases;
}

std::string NamesOfReductions() {
  std::string cases;
  int number = 0;
  for (const char* name : meaning::kHcclReductions) {
    cases += fmt::format(" WHEN {} THEN '{}'", number++, name);
  }
  return cases;
}

// The text with the parts put in that it marks as "@part@".
std::string WithParts(std::string sql) {
  const auto put = [&sql](std::string_view mark, const std::string& part) {
    for (size_t position = sql.find(mark); position != std::string::npos;
         position = sql.find(mark)) {
      sql.replace(position, mark.size(), part);
    }
  };
  put("@gaps of@", kGapsOf);
  put("@between leaves@", kBetweenLeaves);
  put("@most gaps@", std::to_string(LongestGaps::kMost));
  const auto put_operators = [&put](std::string_view mark, auto is) {
    put(mark, SqlTexts(meaning::kTorchOperators, [&is](const meaning::TorchOperator& row) {
          return is(row) ? row.name : std::string_view();
        }));
  };
  using Operator = meaning::TorchOperator;
  put_operators("@operators with masks@",
                [](const Operator& row) { return row.barrier == meaning::Barrier::kMask; });
  put_operators("@copies between devices@",
                [](const Operator& row) { return row.copies_between_devices; });
  put_operators("@unmarked views@", [](const Operator& row) { return row.unmarked_view; });
  put("@dtypes of ranks@", NamesOfDtypes());
  put("@reductions of ranks@", NamesOfReductions());
  put("@most around@", std::to_string(kMostAround));
  put("@first device bits@", std::to_string((meaning::kPlaceHost + 1) << meaning::kPlaceShift));
  put("@code of masks@", std::to_string(meaning::kAclErrorRtStreamCaptured));
  put("@code of copies@", std::to_string(meaning::kAclErrorRtCaptureModeNotSupport));
  put("@reason of masks@", std::string(meaning::FindTorchOperator("aten::index", "")->reason));
  put("@known namespaces@",
      SqlTexts(meaning::kKnownNamespaces, [](std::string_view name) { return name; }));
  return sql;
}

// Takes a text of views apart. Each begins a line with CREATE VIEW and ends with a semicolon;
// comments may follow it.
void AppendViews(std::string_view text, std::vector<ViewText>& views) {
  constexpr std::string_view kBegin = "\nCREATE VIEW ";
  for (size_t begin = text.find(kBegin); begin != std::string_view::npos;) {
    const size_t next = text.find(kBegin, begin + 1);
    const std::string_view piece = text.substr(begin + 1, next - begin);
    const size_t name = kBegin.size() - 1;
    views.push_back({std::string(piece.substr(name, piece.find(' ', name) - name)),
                     std::string(piece.substr(0, piece.rfind(";\n")))});
    begin = next;
  }
}

}  // namespace

std::span<const ViewText> ViewTexts() {
  static const std::vector<ViewText> kViews = [] {
    std::vector<ViewText> views;
    AppendViews(kCallViews, views);
    AppendViews(kDeviceViews, views);
    AppendViews(WithParts(kAnalysisViews), views);
    AppendViews(WithParts(kRankViews), views);
    return views;
  }();
  return kViews;
}

void CreateViews(Database& database) {
  database.Execute(kCallViews);
  database.Execute(kDeviceViews);
  database.Execute(WithParts(kAnalysisViews).c_str());
  database.Execute(WithParts(kRankViews).c_str());
}

}  // namespace acltape::storage
