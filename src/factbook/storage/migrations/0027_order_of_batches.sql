CREATE INDEX CONCURRENTLY batches_in_order ON batches (queue, whole, run_id, number);
