"""The published generator's instances: read, checked and written."""
