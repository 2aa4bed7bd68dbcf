#!/usr/bin/env python3
"""Keeps points of series, and answers what is asked of them, with an engine for analytics that lives
in this process.

    series-rivals.py duckdb|chdb FOLDER

FOLDER takes its files. A first line names the engine and its version; then each line of the input is
one of these, answered by a line of JSON with the time it took and rows:

    load FILE SERIES BATCH  a new table: the points of FILE, appended to each series in batches; how
                            many there are. FILE has all times (i64, microseconds) and then all values
                            (f64), little-endian.
    compact                 merges and compresses the table; its bytes on disk.
    range SERIES            all points of a series, as columns of numpy; their number and sum.
    means                   the mean of each minute of each series, as columns; the number and sum.

Columns are looked at when the time was taken.
"""

import json
import os
import sys
import time

import numpy
import pyarrow

RANGE = "SELECT time, value FROM points WHERE series = {} ORDER BY time"
MEANS = (
    "SELECT series, {} AS minute, avg(value) AS value FROM points "
    "GROUP BY series, minute ORDER BY series, minute"
)


class DuckDB:
    """A table in a file. All batches are one transaction: each would wait for the device."""

    def __init__(self, folder):
        import duckdb as engine

        self.version, self.path = engine.__version__, f"{folder}/points.duckdb"
        self.connection = engine.connect(self.path)
        # What takes seconds would be told among the answers.
        self.connection.execute("SET enable_progress_bar = false")

    def make(self):
        self.connection.begin()
        self.connection.execute(
            "CREATE OR REPLACE TABLE points (series USMALLINT, time BIGINT, value DOUBLE)"
        )

    def append(self, series, batch):
        self.connection.register("batch", batch)
        self.connection.execute(f"INSERT INTO points SELECT {series}, time, value FROM batch")

    def loaded(self):
        self.connection.commit()

    def compact(self):
        self.connection.execute("CHECKPOINT")
        (free, size), = self.connection.execute(
            "SELECT free_blocks * block_size, total_blocks * block_size FROM pragma_database_size()"
        ).fetchall()
        return size - free

    def range(self, series):
        return self.connection.execute(RANGE.format(series)).fetchnumpy()["value"]

    def means(self):
        return self.connection.execute(MEANS.format("time // 60000000")).fetchnumpy()["value"]


class ChDB:
    """ClickHouse with its usual table. A part is the operating system's when it is there."""

    def __init__(self, folder):
        import chdb as engine
        from chdb import session

        self.version, self.session = engine.__version__, session.Session(f"{folder}/chdb")
        # In its own database a name may also be that of a file in the folder of the process.
        self.session.query("CREATE DATABASE rival ENGINE = Atomic")
        self.session.query("USE rival")

    def make(self):
        self.session.query("DROP TABLE IF EXISTS points SYNC")
        self.session.query(
            "CREATE TABLE points (series UInt16, time Int64 CODEC(DoubleDelta, ZSTD), "
            "value Float64 CODEC(ZSTD)) ENGINE = MergeTree ORDER BY (series, time)"
        )

    def append(self, series, batch):
        self.session.query(f"INSERT INTO points SELECT {series}, time, value FROM Python(batch)")

    def loaded(self):
        pass

    def compact(self):
        self.session.query("OPTIMIZE TABLE points FINAL")
        size = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'rival'"
        return int(self.session.query(size, "CSV").bytes())

    def column(self, sql):
        stream = self.session.query(sql, "ArrowStream").bytes()
        return pyarrow.ipc.open_stream(stream).read_all()["value"].to_numpy()

    def range(self, series):
        return self.column(RANGE.format(series))

    def means(self):
        return self.column(MEANS.format("intDiv(time, 60000000)"))


def load(engine, file, series, batch):
    size = os.path.getsize(file) // 16
    times = numpy.fromfile(file, "<i8", size)
    values = numpy.fromfile(file, "<f8", size, offset=8 * size)
    engine.make()
    begin = time.perf_counter_ns()
    for start in range(0, size, batch):
        part = slice(start, start + batch)
        columns = pyarrow.table({"time": times[part], "value": values[part]})
        for one in range(series):
            engine.append(one, columns)
    engine.loaded()
    return begin, [size * series]


def answer(engine, words):
    begin = time.perf_counter_ns()
    match words:
        case ["load", file, series, batch]:
            begin, row = load(engine, file, int(series), int(batch))
        case ["compact"]:
            row = [engine.compact()]
        case ["range", series]:
            row = engine.range(int(series))
        case ["means"]:
            row = engine.means()
    micros = (time.perf_counter_ns() - begin) / 1e3
    if isinstance(row, numpy.ndarray):
        row = [len(row), float(row.sum())]
    return {"micros": micros, "rows": [row]}


def main():
    engines = {"duckdb": DuckDB, "chdb": ChDB}
    if len(sys.argv) != 3 or sys.argv[1] not in engines:
        sys.exit(__doc__)
    engine = engines[sys.argv[1]](sys.argv[2])
    print(f"{sys.argv[1]} {engine.version}", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, line.split())), flush=True)


main()
