"""Overview: how everything stands, first what is the viewer's own."""
