"""The extension in a real JupyterLab, driven in headless Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import doors
import pytest
from playwright.sync_api import Page, expect, sync_playwright
from replay import Door

pytestmark = pytest.mark.browser

CONFIG = """
model_config_list {
  config { name: "half_plus_two_2v" base_path: "%s/half_plus_two_2v" model_platform: "tensorflow"
    model_version_policy { all {} } version_labels { key: "canary" value: 124 } }
}
"""
# JupyterLab takes its time to load on a busy machine.
LOAD_MS = 60_000


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """An empty page of Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser.new_page()
        browser.close()


def show_status(page: Page, door: Door) -> None:
    token = door.headers["Authorization"].removeprefix("token ")
    page.goto(f"http://{door.host}:{door.port}{door.prefix}/lab?token={token}&reset")
    # JupyterLab opens the launcher last, once the layout is restored; keys work from then on.
    expect(page.locator(".jp-Launcher")).to_be_visible(timeout=LOAD_MS)
    page.keyboard.press("Control+Shift+c")
    page.locator(".lm-CommandPalette-input").fill("TF Serve")
    page.locator('.lm-CommandPalette-item[data-command="tfserve:show-status"]').click()


def test_the_dialog_lists_models_versions_states_and_labels(
    page: Page, model_dir: Path, tmp_path: Path
) -> None:
    config = tmp_path / "models.config"
    config.write_text(CONFIG % model_dir)
    with doors.jupyter(config, tmp_path, app="jupyterlab") as door:
        show_status(page, door)
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("TF Serve Status")
        expect(dialog).to_contain_text(f"{door.prefix}/v1/models")
        rows = dialog.locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.nth(0).locator("td")).to_have_text(
            ["half_plus_two_2v", "v124", "● AVAILABLE", "canary"]
        )
        expect(rows.nth(1).locator("td")).to_have_text(["", "v123", "● AVAILABLE", "–"])


def test_the_dialog_says_what_to_do_where_nothing_is_served(page: Page, tmp_path: Path) -> None:
    config = tmp_path / "models.config"
    config.write_text("model_config_list {}")
    with doors.jupyter(config, tmp_path, app="jupyterlab") as door:
        show_status(page, door)
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("Nothing is served.")
        expect(dialog).to_contain_text("%tfserve load NAME PATH")


def test_the_dialog_tells_the_reason_of_the_server(page: Page, tmp_path: Path) -> None:
    config = tmp_path / "models.config"
    config.write_text("model_config_list {}")
    with doors.jupyter(config, tmp_path, app="jupyterlab") as door:
        refusal = (
            '{"error": "no leave to read", "hint": "Ask for it.", "code": "PERMISSION_DENIED"}'
        )
        page.route("**/tfserve/api/models*", lambda route: route.fulfill(status=403, body=refusal))
        show_status(page, door)
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("TF Serve Status Not Available")
        expect(dialog).to_contain_text("no leave to read")
        expect(dialog).to_contain_text("Ask for it.")
