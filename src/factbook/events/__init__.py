"""Events: changes recorded where they are made, in an order that readers can resume."""
