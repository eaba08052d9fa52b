-- Room on each page for the rows that a batch of a publication writes (checks/states/batch_order.py).

-- On postgresql:
ALTER TABLE check_states SET (fillfactor = 80);
