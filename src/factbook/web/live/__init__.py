"""Live pages: a stream that says when something that a page shows has changed."""
