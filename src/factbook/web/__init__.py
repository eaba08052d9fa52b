"""The web interface: pages rendered on the server that work without scripts."""
