"""Import and export of PhantomWiki instances."""
