#!/usr/bin/env python3
"""Answers SQL about one table, `people`, with an engine for analytics that lives in this process.

    analytics-rivals.py duckdb|polars|chdb|datafusion FILE

FILE has a JSON object a line. The table keeps the types that serve its engine best. Once it is
made, a line names the engine and its version; then each line of the input is a query, answered by
a line of JSON:

    {"micros":812.4,"rows":[[260459]]}

The time is that from the text of the query to all of its rows as values of Python.
"""

import json
import sys
import tempfile
import time

AGE, WORDS = "age", ("dept", "city")


def duckdb(file):
    import duckdb as engine

    folder = tempfile.mkdtemp()
    connection = engine.connect(f"{folder}/people.duckdb")
    # What takes seconds would be told among the answers.
    connection.execute("SET enable_progress_bar = false")
    source = f"read_json('{file}', format = 'newline_delimited')"
    for word in WORDS:
        connection.execute(f"CREATE TYPE {word} AS ENUM (SELECT DISTINCT {word} FROM {source})")
    connection.execute(
        "CREATE TABLE people AS SELECT id::INTEGER AS id, age::UTINYINT AS age, "
        f"dept::dept AS dept, city::city AS city, active FROM {source}"
    )
    connection.execute("CHECKPOINT")
    return engine.__version__, lambda sql: connection.execute(sql).fetchall()


def polars(file):
    import polars as engine

    people = engine.read_ndjson(file)
    words = [engine.col(word).cast(engine.Categorical) for word in WORDS]
    people = people.with_columns(engine.col(AGE).cast(engine.Int32), *words)
    context = engine.SQLContext(people=people)
    return engine.__version__, lambda sql: context.execute(sql, eager=True).rows()


def chdb(file):
    import chdb as engine
    from chdb import session

    connection = session.Session(tempfile.mkdtemp())
    connection.query(
        "CREATE TABLE people (id UInt32, age UInt8, dept LowCardinality(String), "
        "city LowCardinality(String), active Bool) ENGINE = MergeTree ORDER BY tuple()"
    )
    connection.query(f"INSERT INTO people SELECT * FROM file('{file}', JSONEachRow)")
    connection.query("OPTIMIZE TABLE people FINAL")

    def rows(sql):
        answer = connection.query(sql, "JSONCompactEachRow").bytes()
        return [json.loads(line) for line in answer.splitlines()]

    return engine.__version__, rows


def datafusion(file):
    import datafusion as engine
    import pyarrow
    from pyarrow import json as reader

    table = reader.read_json(file)
    for word in WORDS:
        place = table.schema.get_field_index(word)
        codes = table[word].dictionary_encode().unify_dictionaries()
        table = table.set_column(place, word, codes)
    place = table.schema.get_field_index(AGE)
    table = table.set_column(place, AGE, table[AGE].cast(pyarrow.int32()))
    batches = table.combine_chunks().to_batches(max_chunksize=1 << 16)
    context = engine.SessionContext()
    halves = (batches[: len(batches) // 2], batches[len(batches) // 2 :])
    context.register_record_batches("people", [half for half in halves if half])

    def rows(sql):
        columns = pyarrow.Table.from_batches(context.sql(sql).collect()).to_pydict()
        return list(zip(*columns.values()))

    return engine.__version__, rows


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("duckdb", "polars", "chdb", "datafusion"):
        sys.exit(__doc__)
    version, rows = globals()[sys.argv[1]](sys.argv[2])
    print(f"{sys.argv[1]} {version}", flush=True)
    for sql in sys.stdin:
        begin = time.perf_counter_ns()
        answer = rows(sql.strip())
        micros = (time.perf_counter_ns() - begin) / 1e3
        print(json.dumps({"micros": micros, "rows": answer}), flush=True)


main()
