"""Events: what changed, told where it is changed, in an order that readers can resume."""
