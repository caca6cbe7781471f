"""Live worlds: Wikipedia and Wikidata, or any MediaWiki and SPARQL endpoint, over a recording HTTP client."""
