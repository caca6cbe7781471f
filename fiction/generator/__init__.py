"""Generation of fictional worlds: families as articles, a graph and web pages, and questions with gold answers."""
