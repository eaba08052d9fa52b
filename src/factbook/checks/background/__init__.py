"""Work beside writes: publications, what is due as time passes, sweeps and daily counts."""
