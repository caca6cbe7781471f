"""Worlds: what questions are answered in."""

from typing import TYPE_CHECKING, Any

from showhow.interface.demonstrations import Library
from showhow.interface.errors import ShowhowError, in_one_sentence
from showhow.interface.homes import Home, find_home
from showhow.runs.services import Services
from showhow.worlds.open import read_world_metadata
from showhow.worlds.source import TextSource

if TYPE_CHECKING:
    import pandas as pd


class World:
    """A world of a home: articles, a graph and web pages, as far as it has them.

    >>> world.info["people"], len(world.search("Who is a friend?", k=2))
    (60, 2)
    """

    def __init__(self, name: str, home: Home) -> None:
        """For `open` and `generate`."""
        self.name = name
        self.home = home

    @classmethod
    @in_one_sentence()
    def open(cls, name: str, *, home: Home | None = None) -> "World":
        """Open a world of this name; `showhow world list` lists those of the home."""
        chosen_home = find_home(home)
        read_world_metadata(chosen_home.services.settings.worlds_folder, name)
        return cls(name, chosen_home)

    @classmethod
    @in_one_sentence()
    def generate(
        cls,
        name: str,
        *,
        people: int = 1000,
        seed: int = 1,
        home: Home | None = None,
        replace: bool = False,
        **options: Any,
    ) -> "World":
        """Generate a fictional world with questions and gold answers; the same options give the same world.

        The other options are those of `showhow world generate`: depth, per_template, split ...
        """
        from showhow.fiction.generator.build import generate_world  # noqa: PLC0415 - other parts do without it
        from showhow.fiction.universe.options import GenerationOptions  # noqa: PLC0415 - as above

        names = [name for name in GenerationOptions.__dataclass_fields__ if name != "generator"]
        if unknown := sorted(options.keys() - set(names)):
            raise ShowhowError(f"there is no option {unknown[0]!r} of generated worlds; there are {', '.join(names)}")
        chosen_home = find_home(home)
        generate_world(
            chosen_home.services.settings.worlds_folder,
            name,
            GenerationOptions(people=people, seed=seed, **options),
            replace=replace,
            # Others would import the program that calls this, and run it once more.
            processes=1,
        )
        return cls(name, chosen_home)

    @property
    def info(self) -> dict[str, Any]:
        """Its kind, sizes, seed, licence and content hash."""
        return read_world_metadata(self._services.settings.worlds_folder, self.name)

    @property
    def _services(self) -> Services:
        return self.home.services

    @in_one_sentence()
    def search(self, query: str, k: int = 5) -> "pd.DataFrame":
        """The most relevant articles for a name or a question: title and snippet."""
        import pandas as pd  # noqa: PLC0415 - it takes half a second to import

        hits = [(hit.title, hit.snippet) for hit in self._text().search(query, k)]
        return pd.DataFrame.from_records(hits, columns=["title", "snippet"])

    @in_one_sentence()
    def article(self, title: str) -> list[str]:
        """The sentences of an article."""
        return list(self._text().article(title).sentences)

    @in_one_sentence()
    def query(self, sparql: str) -> "pd.DataFrame | bool":
        """The result of a SELECT query, with a column for each variable, or of an ASK query."""
        import pandas as pd  # noqa: PLC0415 - as above

        graph = self._services.open_world(self.name).graph
        if graph is None:
            raise ShowhowError(f"the world {self.name} has no graph")
        table = graph.query(sparql)
        if table.boolean is not None:
            return table.boolean
        rows = [[None if cell is None else cell.value for cell in row] for row in table.rows]
        return pd.DataFrame.from_records(rows, columns=list(table.columns))

    @in_one_sentence()
    def questions(self) -> "pd.DataFrame":
        """The questions that it was generated with: id, question, answers, kind."""
        import pandas as pd  # noqa: PLC0415 - as above

        from showhow.evaluation.datasets import read_world_questions  # noqa: PLC0415 - other parts do without it

        rows = [
            (record.source_id, record.text, [gold["text"] for gold in record.gold_answers], record.kind)
            for record in read_world_questions(self._services.settings.worlds_folder, self.name)
        ]
        return pd.DataFrame.from_records(rows, columns=["id", "question", "answers", "kind"])

    @in_one_sentence()
    def demonstrations(self, count: int = 30) -> Library:
        """A library of traces that answer questions of a generated world, every step of which was really run."""
        from showhow.db.models import Project  # noqa: PLC0415 - other parts do without it
        from showhow.evaluation.datasets import read_world_questions  # noqa: PLC0415 - as above
        from showhow.evaluation.scoring.gold_demonstrations import make_demonstrations  # noqa: PLC0415 - as above
        from showhow.oracles.gold_traces.traces import open_gold_world  # noqa: PLC0415 - as above

        records = read_world_questions(self._services.settings.worlds_folder, self.name)
        gold = open_gold_world(self._services, self.name)
        # The same project that an evaluation of the world's questions makes.
        project = Project(name=f"Questions of {self.name}", world=self.name)
        return Library.of_records(make_demonstrations(records, gold, project, count), home=self.home)

    def __repr__(self) -> str:
        return f"World({self.name!r})"

    def _text(self) -> TextSource:
        text = self._services.open_world(self.name).text
        if text is None:
            raise ShowhowError(f"the world {self.name} has no articles")
        return text
