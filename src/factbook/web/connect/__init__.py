"""Pages on connecting agents, and the playground."""
