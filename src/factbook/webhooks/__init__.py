"""Webhooks: delivery of events to the addresses that administrators configure."""
