"""Pages read as a browser would."""

from html.parser import HTMLParser


class Collector(HTMLParser):
    """Tags with their attributes, the text of the page, and the text of each table's cells."""

    def __init__(self):
        super().__init__()
        self.tags, self.words = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)
