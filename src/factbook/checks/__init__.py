"""Checks: rules over the facts of an entity, evaluated to pass, fail or unknown."""
