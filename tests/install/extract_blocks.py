"""Writes the `embedding` blocks of README.md as files: what a reader would copy is what is built."""
import os
import re
import sys

readme, directory = sys.argv[1:]
with open(readme, encoding="utf-8") as file:
    text = file.read()
for wanted in ("main.cc", "CMakeLists.txt"):
    block = re.search(rf"<!-- embedding: {re.escape(wanted)} -->\n```\w+\n(.*?)```", text, re.S)
    if not block:
        sys.exit(f"{readme} has no block '{wanted}'")
    with open(os.path.join(directory, wanted), "w", encoding="utf-8") as out:
        out.write(block.group(1))
