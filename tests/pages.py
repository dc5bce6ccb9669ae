"""Pages read as a browser would."""

from html.parser import HTMLParser

# Tags that have no end.
_VOID = ("meta", "link")


class Collector(HTMLParser):
    """The tags of a page with their attributes, and its texts; a tag that is closed out of turn is an error."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.unclosed = [], [], []

    @classmethod
    def read(cls, page):
        collector = cls()
        collector.feed(page)
        assert collector.unclosed == []
        return collector

    @property
    def text(self):
        return "".join(self.texts)

    def count(self, name):
        return sum(tag == name for tag, _ in self.tags)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.unclosed.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.unclosed.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
