"""The drawing of the graph: contents of the file, and its appearance and behavior in a browser, if there is one.

The browser tests need Chromium (Debian: ``apt-get install chromium``) and skip without. With ``MEM0_ARTIFACTS`` set,
their screenshots are kept in that folder.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from mem0_core import InputError, Memory, MissingExtraError, Scope
from mem0_core.domain.records import Event, RelationChange, Triplet
from mem0_core.graph._layout import layout
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, open_memory

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pyvis") is None, reason="needs the extra viz")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "\u2028",
    "{{data}}",
    "\\",
]


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path / "data") as opened:
        yield MemoryDriver(opened, mode)


def relate(memory: Memory, *edges: Sequence[Any], user: str = "maya") -> None:
    """Commit (source, relationship, destination, day, types) as they stand."""
    embedder = HashEmbedder()
    (vector,) = embedder.embed(["anything"])
    changes = [
        RelationChange(
            Event.ADD,
            Triplet(*edge[:3]),
            vectors=(vector, vector, vector),
            effective_at=f"{edge[3] if len(edge) > 3 else '2025-01-01'}T00:00:00+00:00",
            types=edge[4] if len(edge) > 4 else ("", ""),
        )
        for edge in edges
    ]
    at, space = "2025-01-01T00:00:00+00:00", (embedder.name, embedder.dims)
    memory._store.commit((), relations=changes, scope=Scope(user), at=at, embedding_space=space)


def data_of(file: str) -> dict[str, Any]:
    text = Path(file).read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


def names_of(data: dict[str, Any]) -> set[str]:
    return {node["name"] for node in data["nodes"]}


# --- contents of the file -------------------------------------------------------------------------------------------


def test_the_file_holds_nodes_relations_and_the_memories_behind(memory: MemoryDriver, tmp_path: Path) -> None:
    memory.add("I live in Rome.", user_id="maya", timestamp="2025-01-01")
    memory.add("I moved to Oslo.", user_id="maya", timestamp="2025-06-01")
    memory.add("My sister is Anna.", user_id="maya", timestamp="2025-07-01")
    file = memory.visualize(tmp_path / "deep" / "graph.html", user_id="maya")
    assert file == str(tmp_path / "deep" / "graph.html")
    data = data_of(file)
    assert names_of(data) == {"maya", "Rome", "Oslo", "Anna"}
    assert [(one["label"], one["until"] is None) for one in data["relations"]] == [
        ("lives_in", False),
        ("lives_in", True),
        ("sister", True),
    ]
    texts = {memory["text"] for memory in data["memories"].values()}
    assert "My sister is Anna." in texts
    assert all(set(one["memories"]) <= set(data["memories"]) for one in data["relations"])
    assert all(isinstance(node["x"], int) for node in data["nodes"])


def test_the_file_asks_for_nothing_beyond_itself(memory: MemoryDriver, tmp_path: Path) -> None:
    memory.add("My sister is Anna.", user_id="maya")
    text = Path(memory.visualize(tmp_path / "graph.html", user_id="maya")).read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=", text)
    assert "sourceMappingURL" not in text
    assert "vis-network" in text


def test_by_default_it_lies_in_viz_beside_the_data(memory: MemoryDriver, tmp_path: Path) -> None:
    memory.add("My sister is Anna.", user_id="maya")
    first, second = (Path(memory.visualize(user_id="maya")) for _ in range(2))
    assert first != second
    assert first.parent == second.parent == tmp_path / "data" / "viz"
    assert re.fullmatch(r"graph_view_\d{8}_\d{6}_\d{6}\.html", first.name)
    assert sorted(first.parent.iterdir()) == sorted([first, second]), "nothing unfinished is left"


def test_a_neighbourhood_is_what_lies_around_some_entities(memory: MemoryDriver, tmp_path: Path) -> None:
    chain = [(f"n{number}", "next", f"n{number + 1}") for number in range(6)]
    relate(memory.memory, *chain)
    file = memory.visualize(tmp_path / "g.html", entities=["N2"], depth=1, user_id="maya")
    assert names_of(data_of(file)) == {"n1", "n2", "n3"}
    assert [node["name"] for node in data_of(file)["nodes"] if node["marked"]] == ["n2"]
    file = memory.visualize(tmp_path / "g.html", entities=["n0", "n6"], user_id="maya")
    assert names_of(data_of(file)) == {"n0", "n1", "n2", "n4", "n5", "n6"}
    for wrong in (["nobody"], [], "n2"):
        with pytest.raises(InputError, match=r"nobody|list of names"):
            memory.visualize(tmp_path / "g.html", entities=wrong, user_id="maya")


def test_of_too_many_nodes_the_busiest_are_drawn_and_the_rest_counted(memory: MemoryDriver, tmp_path: Path) -> None:
    relate(memory.memory, *(("hub", "knows", f"n{number}") for number in range(30)), ("n3", "knows", "n4"))
    data = data_of(memory.visualize(tmp_path / "g.html", limit=3, user_id="maya"))
    assert names_of(data) == {"hub", "n3", "n4"}
    assert data["left_out"] == 28


def test_an_empty_graph_is_an_empty_page_and_nobody_elses(memory: MemoryDriver, tmp_path: Path) -> None:
    memory.add("My sister is Zoe.", user_id="eve")
    file = memory.visualize(tmp_path / "g.html", user_id="maya")
    assert data_of(file)["nodes"] == []
    assert "Zoe" not in Path(file).read_text(encoding="utf-8")


def test_hostile_names_are_text(memory: MemoryDriver, tmp_path: Path) -> None:
    relate(memory.memory, *(("<b>maya</b>", "</script>", name, "2025-01-01", ("<i>", "</script>")) for name in HOSTILE))
    plain = Path(memory.visualize(tmp_path / "plain.html", user_id="nobody")).read_text(encoding="utf-8")
    file = memory.visualize(tmp_path / "g.html", user_id="maya")
    assert names_of(data_of(file)) == {"<b>maya</b>", *(name for name in HOSTILE)}
    text = Path(file).read_text(encoding="utf-8")
    assert text.count("</script>") == plain.count("</script>")
    assert text.count("<img") == plain.count("<img")
    relate(memory.memory, ("a", "b", "c"), user="<script>x")
    titled = Path(memory.visualize(tmp_path / "t.html", user_id="<script>x")).read_text(encoding="utf-8")
    assert "<title>Memory of &lt;script&gt;x</title>" in titled


def test_what_cannot_be_written_leaves_the_old_file(memory: MemoryDriver, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(InputError, match="cannot be written"):
        memory.visualize(tmp_path / "file" / "g.html", user_id="maya")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        memory.visualize(tmp_path / "folder", user_id="maya")
    assert sorted(one.name for one in tmp_path.iterdir() if one.name != "data") == ["file", "folder"]
    for wrong in ({"depth": 0}, {"limit": 0}):
        with pytest.raises(InputError):
            memory.visualize(tmp_path / "g.html", user_id="maya", **wrong)


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mem0_core.graph import view

    view._read_library.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with open_memory(tmp_path) as memory, pytest.raises(MissingExtraError, match=r"mem0-core\[viz\]"):
        memory.visualize(tmp_path / "g.html", user_id="maya")
    assert not (tmp_path / "g.html").exists()
    view._read_library.cache_clear()


def test_the_library_is_read_and_not_imported(tmp_path: Path) -> None:
    script = f"""
import sys
from mem0_core import Memory
from mem0_core.testing import HashEmbedder
with Memory({{"path": {str(tmp_path)!r}}}, embedder=HashEmbedder()) as memory:
    memory.visualize(user_id="maya")
assert not {{"pyvis", "IPython", "networkx", "jinja2"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mem0_core.cli import main

    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))
    common = ["--user", "maya", "--config", str(config), "--path", str(tmp_path / "data")]
    main(["add", "My sister is Anna.", *common])
    capsys.readouterr()
    out = tmp_path / "graph.html"
    assert main(["visualize", "Anna", "--out", str(out), *common]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert names_of(data_of(str(out))) == {"maya", "Anna"}
    assert main(["visualize", "Nobody", "--out", str(out), *common]) == 1
    assert "Nobody" in capsys.readouterr().err


# --- where the nodes lie -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "joined"), [(0, 0), (1, 0), (2, 1), (40, 60), (900, 1_200)])
def test_no_two_nodes_lie_on_one_another(count: int, joined: int) -> None:
    chance = np.random.default_rng(1)
    pairs = [(int(a), int(b)) for a, b in chance.integers(0, max(1, count), (joined, 2))] + [(0, 0)] * bool(count)
    places = layout(count, pairs)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert np.array_equal(places, layout(count, pairs)), "the same graph is drawn the same"
    if count > 1:
        assert len(np.unique(places.round(), axis=0)) == count
        assert np.abs(places).max() < 400 * np.sqrt(count)


def test_what_is_joined_lies_nearer_than_what_is_not() -> None:
    pairs = [(a, b) for start in (0, 20) for a in range(start, start + 20) for b in range(start, a)]
    places = layout(40, [*pairs, (0, 20)])
    inner = np.linalg.norm(places[:20] - places[:20].mean(axis=0), axis=1).max()
    assert np.linalg.norm(places[:20].mean(axis=0) - places[20:].mean(axis=0)) > inner


# --- in a browser --------------------------------------------------------------------------------------------------

Browse = Callable[..., "Seen"]


class Seen:
    """A page as Chromium shows it: its DOM, its requests, and the screenshot's path."""

    def __init__(self, page: Path, fragment: str, folder: Path, *options: str) -> None:
        assert CHROMIUM is not None
        self.shot, log = folder / f"{page.stem}.png", folder / "net.json"
        common = [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *(
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
            ),
            "--host-resolver-rules=MAP * ~NOTFOUND",  # the browser has errands of its own: none leaves this machine
            *("--window-size=1400,900", "--virtual-time-budget=10000", f"--user-data-dir={folder / 'profile'}"),
            *options,
        ]
        url = f"{page.as_uri()}{fragment}"
        run = {"check": True, "timeout": 180, "capture_output": True, "text": True}
        subprocess.run([*common, f"--screenshot={self.shot}", f"--log-net-log={log}", url], **run)  # type: ignore[call-overload]
        self.dom: str = subprocess.run([*common, "--dump-dom", url], **run).stdout  # type: ignore[call-overload]
        self.requests = _requests_of_pages(log)
        if kept := os.environ.get("MEM0_ARTIFACTS"):
            Path(kept).mkdir(parents=True, exist_ok=True)
            shutil.copy(self.shot, kept)

    def says(self, name: str) -> str | None:
        """A data attribute of the body."""
        found = re.search(rf'<body[^>]* data-{name}="([^"]*)"', self.dom)
        return found.group(1) if found else None

    def inks(self) -> dict[tuple[int, int, int], int]:
        """Strong colours in the left part of the screenshot, where the graph is, and how many pixels have them."""
        image = pytest.importorskip("PIL.Image").open(self.shot).convert("RGB")
        pixels = np.asarray(image.crop((0, 60, 1050, 900))).reshape(-1, 3)
        strong = pixels[(pixels.max(axis=1).astype(int) - pixels.min(axis=1)) > 100]
        colours, counts = np.unique(strong, axis=0, return_counts=True)
        return {tuple(colour.tolist()): int(n) for colour, n in zip(colours, counts, strict=True) if n > 20}


def _requests_of_pages(log: Path) -> set[str]:
    """Return the URLs that pages requested beyond their file, by the browser's log; not the browser's own requests."""
    found = set()
    for event in json.loads(log.read_text(encoding="utf-8", errors="replace"))["events"]:
        asked = event.get("params", {})
        url, initiator = str(asked.get("url", "")), str(asked.get("initiator", "not an origin"))
        if initiator != "not an origin" and not url.startswith(("file:", "data:", "blob:")):
            found.add(url)
    return found - {""}


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    return lambda page, fragment="", *options: Seen(Path(page), fragment, tmp_path, *options)


def grown(tmp_path: Path, count: int) -> str:
    """A drawing of `count` nodes of three types, as a tree with some more relations."""
    chance = np.random.default_rng(count)
    types = ("person", "place", "company")
    edges = []
    for number in range(1, count):
        above = int(number * chance.random() ** 2)
        day = f"2025-{chance.integers(1, 13):02}-15"
        edges.append(
            (
                f"node {above}",
                ("knows", "likes")[number % 2],
                f"node {number}",
                day,
                (types[above % 3], types[number % 3]),
            )
        )
    with open_memory(tmp_path / "data") as memory:
        relate(memory, *edges)
        return memory.visualize(tmp_path / f"graph-{count}.html", user_id="maya")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 500, 5_000])
def test_a_browser_draws_it_and_asks_the_network_for_nothing(count: int, tmp_path: Path, browse: Browse) -> None:
    seen = browse(grown(tmp_path, count))
    assert seen.says("drawn") == "yes"
    assert (seen.says("nodes"), seen.says("relations")) == (str(count), str(count - 1))
    assert seen.requests == set()
    assert len(seen.inks()) >= 3, "nodes of each type can be seen"


RECORD = r"""<body><script>
const drawn = new Map(), context = CanvasRenderingContext2D.prototype, { fillText, clearRect } = context;
context.fillText = function (text, x, y) {
  fillText.call(this, text, x, y);
  const { a, e, f } = this.getTransform(), half = this.measureText(text).width * a / 2;
  const size = parseFloat(this.font.match(/([\d.]+)px/)[1]) * a, [left, top] = [x * a + e - half, y * a + f - size / 2];
  drawn.set(`${text} ${x} ${y}`, [text, left, top, left + 2 * half, top + size, size]);
};
context.clearRect = function (...box) { drawn.clear(); clearRect.apply(this, box); };
const encode = (value) => btoa(encodeURIComponent(JSON.stringify(value)));
setTimeout(() => { document.body.dataset.boxes = encode([...drawn.values()]); }, 1500);
</script>"""


def drawn_labels(seen: Seen) -> list[tuple[str, list[float]]]:
    """Return the texts of the last frame of the graph, with their boxes and sizes in pixels."""
    encoded = seen.says("boxes")
    assert encoded is not None
    boxes = json.loads(unquote(base64.b64decode(encoded).decode()))
    return [(text, box) for text, *box in boxes]


@needs_chromium
@pytest.mark.slow
def test_no_two_labels_of_two_hundred_nodes_overlap(tmp_path: Path, browse: Browse) -> None:
    file = Path(grown(tmp_path, 200))
    file.write_text(file.read_text(encoding="utf-8").replace("<body>", RECORD, 1), encoding="utf-8")
    labels = drawn_labels(browse(file))
    assert len(labels) >= 60
    assert min(box[4] for _, box in labels) >= 11, "readable"
    overlapping = [
        (one, other)
        for number, (one, a) in enumerate(labels)
        for other, b in labels[:number]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]
    assert overlapping == []


def legend(seen: Seen) -> dict[str, str]:
    """Return the color of each type."""
    found = re.findall(r'data-type="([^"]+)"><span class="dot" style="background: ([^;]+);', seen.dom)
    return dict(found)


@needs_chromium
@pytest.mark.slow
def test_a_type_has_one_color_in_all_drawings_and_another_in_the_dark(tmp_path: Path, browse: Browse) -> None:
    def draw(name: str, *types: str) -> str:
        with open_memory(tmp_path / name) as memory:
            relate(memory, *((f"a {one}", "near", f"b {one}", "2025-01-01", (one, one)) for one in types))
            return memory.visualize(tmp_path / f"{name}.html", user_id="maya")

    one, other = draw("one", "person", "planet", "vehicle"), draw("other", "vehicle", "city", "person", "instrument")
    first, second = legend(browse(one)), legend(browse(other))
    assert set(first) == {"person", "planet", "vehicle"}
    assert len(set(second.values())) == 4
    assert {name: second[name] for name in ("person", "vehicle")} == {
        name: first[name] for name in ("person", "vehicle")
    }
    dark = browse(one, "", "--blink-settings=preferredColorScheme=0")
    image = pytest.importorskip("PIL.Image").open(dark.shot).convert("L")
    assert np.asarray(image).mean() < 60
    assert set(legend(dark)) == set(first)
    assert legend(dark)["person"] != first["person"]


@needs_chromium
@pytest.mark.slow
def test_a_request_would_be_seen(tmp_path: Path, browse: Browse) -> None:
    page = tmp_path / "asks.html"
    page.write_text('<body data-drawn="no"><img src="http://127.0.0.1:9/picture.png">')
    seen = browse(page)
    assert seen.requests == {"http://127.0.0.1:9/picture.png"}
    assert seen.says("drawn") == "no"
    assert seen.inks() == {}


@needs_chromium
@pytest.mark.slow
def test_search_time_and_filter_change_what_is_shown(tmp_path: Path, browse: Browse) -> None:
    with open_memory(tmp_path / "data") as memory:
        memory.add("I live in Rome.", user_id="maya", timestamp="2025-01-01")
        memory.add("I moved to Oslo.", user_id="maya", timestamp="2025-06-01")
        memory.add("My sister is Anna.", user_id="maya", timestamp="2025-07-01")
        file = memory.visualize(tmp_path / "story.html", user_id="maya")
    now = browse(file)
    assert (now.says("nodes"), now.says("relations")) == ("3", "2")
    assert "I moved to Oslo" not in details(now.dom)
    then = browse(file, "#time=2025-03-01")
    assert (then.says("nodes"), then.says("relations")) == ("2", "1")
    assert (now.says("view"), then.says("view")) == ("now", "then")
    assert "1 relations; 1 ended since, 2 began since" in then.dom
    hidden = browse(file, "#hide=sister")
    assert (hidden.says("nodes"), hidden.says("relations")) == ("2", "1")
    found = browse(file, "#find=oslo")
    assert "I moved to Oslo" in details(found.dom)
    assert "2025-06-01 to now" in details(found.dom)


CLICK = """<script>
setTimeout(() => {
  const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const strong = (x, y, at = 4 * (y * width + x)) => data[at + 3] && Math.abs(data[at] - data[at + 2]) > 100;
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (strong(x, y) && strong(x + 6, y + 6)) {
    const at = { clientX: box.left + (x + 6) * box.width / width, clientY: box.top + (y + 6) * box.height / height };
    const how = { ...at, bubbles: true, pointerId: 1, isPrimary: true, button: 0, pointerType: "mouse" };
    canvas.dispatchEvent(new PointerEvent("pointerdown", { ...how, buttons: 1 }));
    canvas.dispatchEvent(new PointerEvent("pointerup", how));
    return;
  }
}, 1000);
</script></body>"""


@needs_chromium
@pytest.mark.slow
def test_a_click_on_a_node_shows_its_memories(tmp_path: Path, browse: Browse) -> None:
    with open_memory(tmp_path / "data") as memory:
        memory.add("My sister is Anna.", user_id="maya")
        file = Path(memory.visualize(tmp_path / "click.html", user_id="maya"))
    assert "Click a node" in details(browse(file).dom)
    file.write_text(file.read_text(encoding="utf-8").replace("</body>", CLICK), encoding="utf-8")
    clicked = details(browse(file).dom)
    assert re.search("<h2>(maya|Anna)</h2>", clicked)
    assert "My sister is Anna." in clicked


@needs_chromium
@pytest.mark.slow
def test_a_browser_shows_hostile_names_as_text(tmp_path: Path, browse: Browse) -> None:
    with open_memory(tmp_path / "data") as memory:
        relate(memory, *(("maya", "</script>", name, "2025-01-01", ("", "<b>")) for name in HOSTILE))
        file = memory.visualize(tmp_path / "hostile.html", user_id="maya")
    seen = browse(file, "#find=maya")
    assert seen.says("drawn") == "yes"
    assert seen.requests == set()
    assert "&lt;img src=x onerror=alert(1)&gt;" in details(seen.dom)
    assert "<img" not in details(seen.dom)


def details(dom: str) -> str:
    """The part of the page that shows details."""
    (found,) = re.findall(r'<section id="detail">(.*?)</section>', dom, re.DOTALL)
    return str(found)
