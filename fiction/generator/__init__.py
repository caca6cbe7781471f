"""Worlds made to measure: fictional families as articles, a graph, web pages and questions with all their gold."""
