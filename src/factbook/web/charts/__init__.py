"""Charts and graphs as SVG, made by functions without any state."""
