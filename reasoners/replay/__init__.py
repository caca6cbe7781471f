"""Following demonstrations without a model: what they show is learned, and done again on another question.

phrases     English noun phrases: the friend of the daughter of the person whose hobby is chess
english     inflections, opposites, dates
asks        what a demonstration asks of whom, step by step, and what it found
sentences   how sentences that were read say it
openly      sentences that none shows, read by their words
kin         what English knows of relations
frames      the wording of its question with holes, and how the answer follows from what was found
operations  the ways in which answers follow: all, count, first, last, before, equal ...
lessons     all of this from several demonstrations
walk        the steps of one run, with the origins of their arguments
names       whom a name means among namesakes
reader      what sentences that were read say in answer
shared      wordings that the hits of one search share
things      what is found on the way
inquiry     what is known of the world so far, and what stays unclear
graph       asking the graph, as demonstrations show it
articles    reading and searching articles
pages       reading and searching web pages
lookups     looking something up in every source that may tell a part
follow      a question from its frame to its answer
"""
