"""Sign-in with the account of an OpenID Connect provider."""
