"""A fake AWS Organizations with its STS, on the published shapes of their answers."""
