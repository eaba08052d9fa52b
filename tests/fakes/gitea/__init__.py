"""A fake Gitea: state to set up, an application to ask, faults to inject, counters to read."""
