#!/usr/bin/env bash
# The documents' links: each relative one leads to a file, and to a heading where it names one; every page under docs/ is
# reachable from docs/README.md. First the check itself is tried on a small tree with each kind of mistake.
#   links.sh [ROOT]        checks another tree, without trying itself
set -euo pipefail

# check_links ROOT: prints each mistake as FILE:LINE: …; ends with 1 if there is one.
check_links() {
  python3 - "$1" <<'PYTHON'
import collections, os, re, sys, unicodedata, urllib.parse

root = os.path.realpath(sys.argv[1])
mistakes = 0


def complain(page, line, what):
    global mistakes
    mistakes += 1
    print(f"{os.path.relpath(page, root)}:{line}: {what}")


def lines_of_prose(page):
    """The lines of a page with their numbers, without code: links in examples are not links."""
    fence = False
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.lstrip().startswith("```"):
                fence = not fence
            elif not fence and not line.startswith("    "):
                yield number, re.sub(r"<!--.*?-->", "", line)


def anchor(title, seen):
    """The anchor that GitHub gives to a heading: words in small letters, joined by dashes; later ones of one name get a number."""
    title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).strip().lower()
    name = "".join(c for c in title if c in "-_ " or unicodedata.category(c)[0] in "LN").replace(" ", "-")
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name] - 1}"


anchors = {}


def anchors_of(page):
    if page not in anchors:
        seen = collections.Counter()
        titles = (re.match(r"#+\s+(.*)", line) for _, line in lines_of_prose(page))
        anchors[page] = {anchor(title[1], seen) for title in titles if title}
    return anchors[page]


def links_of(page):
    """(line, file) of every relative link; complains about those that lead nowhere."""
    for number, line in lines_of_prose(page):
        line = re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", line):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue  # another place: nothing here may ask the network
            path, _, fragment = urllib.parse.unquote(target).partition("#")
            file = os.path.realpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(file):
                complain(page, number, f"'{target}' leads to no file")
            elif not (file + os.sep).startswith(root + os.sep):
                complain(page, number, f"'{target}' leads out of the repository")
            elif fragment and file.endswith(".md") and fragment not in anchors_of(file):
                complain(page, number, f"'{target}': that page has no heading '{fragment}'")
            else:
                yield file


docs = os.path.join(root, "docs")
pages = [os.path.join(folder, name) for folder, _, names in os.walk(docs) for name in sorted(names) if name.endswith(".md")]
pages += [os.path.join(root, name) for name in sorted(os.listdir(root)) if name.endswith(".md")]
links = {page: list(links_of(page)) for page in pages}

index = os.path.join(docs, "README.md")
reached, waiting = {index}, [index]
while waiting:
    for file in links.get(waiting.pop(), []):
        if file not in reached:
            reached.add(file)
            waiting.append(file)
for page in pages:
    if page.startswith(docs + os.sep) and page not in reached:
        complain(page, 1, "cannot be reached from docs/README.md")

print(f"{len(pages)} pages, {sum(map(len, links.values()))} links, {mistakes} mistakes")
sys.exit(1 if mistakes or index not in links else 0)
PYTHON
}

# expect TEXT: the check of the small tree fails and says TEXT. Without TEXT: it passes.
expect() {
  local output status=0
  output=$(check_links "$tree") || status=$?
  if [[ -z ${1:-} ]]; then
    [[ $status -eq 0 ]] || { echo "a tree in order is refused: $output" && exit 1; }
  else
    [[ $status -ne 0 && $output == *"$1"* ]] || { echo "does not say '$1' but: $output" && exit 1; }
  fi
}

if [[ $# -gt 0 ]]; then
  check_links "$1"
  exit
fi

tree=$(mktemp -d "${TMPDIR:-/tmp}/tutti docs XXXXXX")
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs/guide"
printf '# Index\n[a](guide/a.md#two-words-2-of-them), [b](guide/b.md)\n' >"$tree/docs/README.md"
printf '# A\n## Two words: `2` of them\n`[no](link.md)`\n\n    [no](link.md)\n' >"$tree/docs/guide/a.md"
printf '# B\n[up](../../README.md) [there](https://example.org/x)\n' >"$tree/docs/guide/b.md"
printf '# Root\n[docs](docs/README.md)\n' >"$tree/README.md"
expect
printf '[gone](gone.md)\n' >>"$tree/docs/guide/a.md"
expect "docs/guide/a.md:6: 'gone.md' leads to no file"
sed -i '$d' "$tree/docs/guide/a.md"
printf '[where](a.md#nowhere)\n' >>"$tree/docs/guide/b.md"
expect "docs/guide/b.md:3: 'a.md#nowhere': that page has no heading 'nowhere'"
sed -i '$d' "$tree/docs/guide/b.md"
printf '# C\n' >"$tree/docs/guide/c.md"
expect 'docs/guide/c.md:1: cannot be reached from docs/README.md'
rm "$tree/docs/guide/c.md"
printf '[root](docs/performance.md)\n' >>"$tree/README.md"
expect "README.md:3: 'docs/performance.md' leads to no file"
sed -i '$d' "$tree/README.md"
expect

check_links "$(dirname -- "${BASH_SOURCE[0]}")/../.."
