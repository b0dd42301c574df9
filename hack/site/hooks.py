# Copyright The Masthead Authors.
# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does to the pages beside rendering them.

The pages are written for GitHub. MkDocs renders another dialect: what a list item contains is indented by four spaces,
and a list comes after an empty line. Links that leave docs/ lead to the repository. When the site is built, every link
is held against what is there, because MkDocs does not look at anchors.
"""
import html.parser
import os
import posixpath
import re
import urllib.parse

from mkdocs.exceptions import PluginError

ITEM = re.compile(r"( *)([-*]|\d+\.)( +)(?=\S)")
FENCE = re.compile(r" *```")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
CODE_WITH_PIPE = re.compile(r"`[^`]*\\\|[^`]*`")


def on_page_markdown(markdown, page, config, files):
    """Turns a page of GitHub's dialect into one of MkDocs'."""
    folded = markdown.replace("<details><summary>", '<details markdown="1">\n<summary markdown="span">')
    return relist(outward(folded, page, config))


def outward(markdown, page, config):
    """Has links that leave the folder of the pages lead to the repository."""

    def replace(match):
        target = match.group(2)
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_path), target))
        if "://" in target or path.startswith("docs/") and not os.path.isdir(path):
            return match.group(0)
        return f"{match.group(1)}{config['repo_url']}/tree/main/{path}{match.group(3)}"

    return LINK.sub(replace, markdown)


def relist(markdown):
    """Indents what list items contain by four spaces for each level."""
    out, inside, fenced, before = [], [], False, ""
    for line in markdown.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        item = None if fenced else ITEM.match(line)
        if line.strip() and not fenced:
            # A line that is indented less ends the items that it is not a part of. One that follows text goes on with it.
            while inside and indent < inside[-1] and (item or not before.strip()):
                inside.pop()
        depth = len(inside)
        if item:
            text = not inside and not ITEM.match(before) and not before.startswith(" ")
            if before.strip() and (text or FENCE.match(before)):
                out.append("")
            inside.append(item.end())
        removed = inside[depth - 1] if depth else 0
        line = " " * (4 * depth) + line[min(indent, removed):] if line.strip() else ""
        if line.lstrip().startswith("|"):
            line = CODE_WITH_PIPE.sub(lambda m: m.group(0).replace("\\|", "|"), line)
        if FENCE.match(line):
            fenced = not fenced
        out.append(line)
        before = line
    return "\n".join(out)


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], {""}

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(a for a in (attrs.get("id"), attrs.get("name") if tag == "a" else None) if a)
        link = attrs.get("href" if tag == "a" else "src" if tag == "img" else "")
        if link:
            self.links.append(link)


def on_post_build(config):
    """Sees that every link within the site leads somewhere."""
    pages = {}
    for folder, _, names in os.walk(config["site_dir"]):
        for name in names:
            if name.endswith(".html") and name != "404.html":
                page = pages[os.path.join(folder, name)] = Page()
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    page.feed(file.read())
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            anchor = urllib.parse.unquote(parts.fragment)
            if not os.path.exists(target) or target in pages and anchor not in pages[target].anchors:
                wrong.append(f"{os.path.relpath(path, config['site_dir'])}: {link}")
    if wrong:
        raise PluginError("links lead nowhere:\n" + "\n".join(sorted(set(wrong))))
