"""Live worlds: Wikipedia and Wikidata, or any MediaWiki and SPARQL endpoint, asked politely through one door."""
