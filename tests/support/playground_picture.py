"""Draw docs/images/playground.png, the README's picture.

Run it with `python -m tests.support.playground_picture`. Needs Chromium. The picture shows a sample
text under two strategies, with a question about it.
"""

from __future__ import annotations

import io
import shutil
import socket
import threading
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from PIL import Image

from rag_splitters.playground import create_app
from rag_splitters.reading.samples import SAMPLE_QUESTIONS

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "playground.png"
SETTINGS = {
    "text": "tram.md",
    "a": "recursive",
    "a.chunk_size": 400,
    "b": "fixed_size",
    "b.chunk_size": 400,
    "q": SAMPLE_QUESTIONS[1],
}


def screenshot() -> bytes:
    """The page with these settings, as PNG."""
    # Here, because the tests' modules are imported for their doctests where Playwright is missing.
    from playwright.sync_api import sync_playwright

    with socket.create_server(("127.0.0.1", 0)) as listener, sync_playwright() as driver:
        server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 880})
        page.goto(f"http://127.0.0.1:{listener.getsockname()[1]}/?{urlencode(SETTINGS)}")
        page.wait_for_selector(".view[data-side=b] .results li")
        page.get_by_role("button", name="Ask").click()
        page.wait_for_selector(".view[data-side=b] .piece.on")
        page.mouse.click(5, 5)  # no focus ring
        content = page.screenshot()
        browser.close()
        server.should_exit = True
        thread.join()
    return content


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(io.BytesIO(screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {picture.width} x {picture.height}, {PICTURE.stat().st_size:,} bytes")  # noqa: T201
