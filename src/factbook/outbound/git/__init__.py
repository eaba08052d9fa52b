"""Git as a transport: clones without file contents, bounded in time and size."""
