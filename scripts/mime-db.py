#!/usr/bin/env python3
"""Packs the released versions of the MIME type registry `mime-db` into one file.

FOLDER holds VERSION.json for every version, versions.txt (their order, oldest first) and the
package's own HISTORY.md (the dates). The answer is one line of JSON for each version,

    {"version":"1.0.0","date":"2014-08-30","document":{...}}

compressed by zstd. A document is the file's text without the white space between its tokens:
the order of keys and the text of numbers stay as published. A version that HISTORY.md gives no
date for has no "date".
"""

import argparse
import json
import pathlib
import re
import subprocess

TOKEN_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
RELEASE = re.compile(r"^(\d+\.\d+\.\d+) / (\d{4}-\d{2}-\d{2})$", re.MULTILINE)


def compact(text):
    """The same JSON text without the white space between its tokens."""
    answer = TOKEN_OR_SPACE.sub(lambda match: match.group(1) or "", text)
    assert json.loads(answer) == json.loads(text)
    return answer


def line(folder, version, dates):
    date = f'"date":"{dates[version]}",' if version in dates else ""
    document = compact((folder / f"{version}.json").read_text(encoding="utf-8"))
    return f'{{"version":"{version}",{date}"document":{document}}}\n'


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    versions = (options.folder / "versions.txt").read_text().split()
    dates = dict(RELEASE.findall((options.folder / "HISTORY.md").read_text(encoding="utf-8")))
    lines = "".join(line(options.folder, version, dates) for version in versions)
    # The window spans the whole text (under 8 MiB), so that a version costs what it changed; no more
    # than that, because whoever decodes must hold one window in memory.
    command = ["zstd", "-q", "-f", "--ultra", "-22", "--zstd=wlog=23", "-o", options.output]
    subprocess.run(command, input=lines.encode(), check=True)
    print(f"{len(versions)} versions, {len(lines)} bytes, {options.output.stat().st_size} packed")


if __name__ == "__main__":
    main()
