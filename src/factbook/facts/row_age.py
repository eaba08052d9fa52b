"""Age of a row of history, as SQL: the time until which it, or a row that needs it, was found.

Rows that share long values (facts.long_values) are as old as the newest of them. So they go
together: none loses its values, and no row is compared with one from before a gap.
"""

from typing import Final

# For a row `h`. Its newest confirmation is that of the latest facts, also of rows that share its
# values. They follow it within a day, one after the other, so the next row tells if there are any.
FOUND_UNTIL: Final = """
COALESCE(CASE WHEN COALESCE(h.held_at, h.written_at) = (
    SELECT n.held_at FROM facts_history n WHERE n.source_id = h.source_id
        AND n.entity_id = h.entity_id AND n.written_at > h.written_at
    ORDER BY n.written_at LIMIT 1
) THEN (
    SELECT COALESCE(r.confirmed_at, CASE WHEN NOT EXISTS (
        SELECT 1 FROM facts_history n WHERE n.source_id = r.source_id
            AND n.entity_id = r.entity_id AND n.written_at > r.written_at
    ) THEN (
        SELECT l.written_at FROM facts_latest l
        WHERE l.source_id = r.source_id AND l.entity_id = r.entity_id
    ) END, r.written_at) AS found_until FROM facts_history r
    WHERE r.source_id = h.source_id AND r.entity_id = h.entity_id
        AND r.written_at < COALESCE(h.held_at, h.written_at) + 86400000
        AND r.held_at = COALESCE(h.held_at, h.written_at)
    ORDER BY r.written_at DESC LIMIT 1
) END, h.confirmed_at, CASE WHEN NOT EXISTS (
    SELECT 1 FROM facts_history n WHERE n.source_id = h.source_id
        AND n.entity_id = h.entity_id AND n.written_at > h.written_at
) THEN (
    SELECT l.written_at FROM facts_latest l
    WHERE l.source_id = h.source_id AND l.entity_id = h.entity_id
) END, h.written_at)
"""
