"""All true facts of a fictional or imported world: people, families and places as integer arrays."""
