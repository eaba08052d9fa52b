"""Parts that all pages share: layout, forms, sessions, static files."""
