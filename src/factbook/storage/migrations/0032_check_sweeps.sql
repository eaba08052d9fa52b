-- The sweep over the states of all entities (checks/sweep.py): when the last one was begun, and the
-- last entity that it has reached.
INSERT INTO counters (name, value) VALUES ('check sweep', 0), ('checks swept up to', 0);
