"""The words of a question that name nothing, and so need not be found in an article."""

STOP_WORDS = frozenset(
    (
        "a about after all also am an and any are as at be became because been before being between both but "
        "by can could did do does doing during each either else ever every find for from get give given go "
        "had has have having he her here hers him himself his how i if in into is it its itself just know "
        "known list many may me might more most much must my name named neither no nor not of off on once one "
        "only or other our out over own please s same shall she should show so some such t tell than that the "
        "their them then there these they this those through to too under until up upon us very was we were "
        "what when where which while who whom whose why will with would you your "
    ).split()
)
