"""Who asks, and how it is known: tokens of our own, of a Keystone, of an OpenID provider."""
