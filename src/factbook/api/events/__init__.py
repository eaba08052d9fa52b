"""Events and webhooks over HTTP."""
