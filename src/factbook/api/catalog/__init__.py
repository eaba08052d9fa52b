"""The catalog over HTTP, as Backstage clients call it."""
