"""The endpoint of the Model Context Protocol."""
