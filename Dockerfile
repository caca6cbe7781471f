# Showhow in a container, from the same files and commands as a checkout: `make install`, and what `make run` ends with.
FROM python:3.11-slim

# pg_dump and pg_restore make and read the backups of PostgreSQL.
RUN apt-get update && apt-get install --yes --no-install-recommends make postgresql-client && rm -rf /var/lib/apt/lists/*
# The server's user owns the data only, not the program.
RUN useradd --create-home --uid 10001 showhow && install --directory --owner showhow --mode 700 /data /data/worlds /backups

WORKDIR /showhow
COPY . .
RUN make install
# What the extras of pyproject.toml name, such as procrastinate for `showhow worker`.
ARG PACKAGES=""
RUN test -z "$PACKAGES" || .venv/bin/pip install --quiet $PACKAGES

ENV PATH=/showhow/.venv/bin:$PATH SHOWHOW_HOME=/data SHOWHOW_LOGIN=password
USER showhow
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
CMD ["showhow", "run", "--address", "0.0.0.0"]
