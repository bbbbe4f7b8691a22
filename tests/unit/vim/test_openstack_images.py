"""Images of packages in Glance: one for all VNFs, whoever comes first, and none when the last has gone."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from typing import Any

import msgspec
import pytest

from slipway.model.errors import StepError, VimError, VimFault
from slipway.vim.openstack.images import UPLOADS, ImageTimeouts
from slipway.vim.openstack.package_images import image_name
from tests.unit.vim.glance_standin import a_glance
from tests.unit.vim.image_world import ARGS, CONTENT, DIGEST, FILE, NAME, QUICK, World
from tests.unit.vim.keystone_standin import a_keystone
from tests.unit.vim.loopback import Asked, Reply


@pytest.fixture
def world() -> Iterator[World]:
    with a_keystone() as keystone, a_glance(keystone) as glance, closing(World(glance)) as world:
        yield world


async def test_the_file_becomes_a_private_image_with_what_the_vnfd_says(world: World) -> None:
    await world.upload("one")
    ((id_, image),) = world.glance.images.items()
    assert world.glance.content[id_] == CONTENT
    assert {key: image[key] for key in ("name", "status", "visibility", "disk_format", "container_format")} == {
        "name": NAME, "status": "active", "visibility": "private", "disk_format": "qcow2", "container_format": "bare",
    }  # fmt: skip
    assert (image["min_disk"], image["min_ram"]) == (2, 512)
    assert set(image["tags"]) == {"slipway", FILE, "vnf-one"}


async def test_an_image_that_is_there_costs_one_look(world: World) -> None:
    await world.upload("one")
    world.glance.asked.clear()
    await world.upload("one")
    assert [one.method for one in world.glance.asked] == ["GET"]


async def test_two_vnfs_share_one_image_and_the_last_to_go_removes_it(world: World) -> None:
    await world.upload("one")
    await world.upload("two")
    assert world.tags() == [{"slipway", FILE, "vnf-one", "vnf-two"}]
    await world.release("one")
    assert world.tags() == [{"slipway", FILE, "vnf-two"}]
    await world.release("two")
    await world.release("two")
    assert world.glance.images == {}


async def test_those_who_begin_or_end_at_the_same_time_share_one_image(world: World) -> None:
    vnfs = [f"vnf{number}" for number in range(6)]
    await asyncio.gather(*map(world.upload, vnfs))
    assert world.tags() == [{"slipway", FILE, *(f"vnf-{one}" for one in vnfs)}]
    assert sum(one.method == "POST" for one in world.glance.asked) <= UPLOADS
    await asyncio.gather(*map(world.release, vnfs[:5]), world.upload("new"))
    assert world.tags() == [{"slipway", FILE, "vnf-vnf5", "vnf-new"}]
    await asyncio.gather(*map(world.release, ["vnf5", "new"]))
    assert world.glance.images == {}


@pytest.mark.slow
async def test_two_slipways_that_take_each_others_tags_away_agree_in_the_end(world: World) -> None:
    world.glance.tag_seconds = 0.05
    timeouts = ImageTimeouts(tag_settle=0.5, create_race=0.05)
    world.use(timeouts)
    with closing(World(world.glance, timeouts)) as other:
        await asyncio.gather(*(one.upload(vnf) for one, vnf in ((world, "a"), (other, "b"), (world, "c"))))
        assert world.tags() == [{"slipway", FILE, "vnf-a", "vnf-b", "vnf-c"}]
        await asyncio.gather(world.release("a"), other.upload("d"), other.release("b"))
        assert world.tags() == [{"slipway", FILE, "vnf-c", "vnf-d"}]
        await asyncio.gather(world.release("c"), other.release("d"))
    assert world.glance.images == {}


async def test_a_rollback_takes_back_what_the_operation_made_and_no_more(world: World) -> None:
    await world.upload("one")
    await world.undo("one", msgspec.structs.replace(ARGS, kept=True))
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]
    await world.upload("two")
    await world.undo("two")
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]
    await world.undo("one")
    await world.undo("one")
    assert world.glance.images == {}


async def test_images_of_the_present_package_stay_when_others_are_released(world: World) -> None:
    world.glance.add("old", "slipway", "sha-0", "vnf-one", name=image_name("0"))
    await world.upload("one")
    await world.release("one", DIGEST)
    assert [one["name"] for one in world.glance.images.values()] == [NAME]


@pytest.mark.parametrize("status", ["queued", "saving", "active"])
async def test_what_a_crash_left_in_the_middle_of_an_upload_is_made_anew(world: World, status: str) -> None:
    world.glance.add("half", "slipway", FILE, "vnf-one", name=f"{NAME} (upload)", status=status)
    await world.upload("one")
    assert "half" not in world.glance.images
    assert [one["name"] for one in world.glance.images.values()] == [NAME]


async def test_and_is_removed_by_a_rollback(world: World) -> None:
    world.glance.add("half", "slipway", FILE, "vnf-one", name=f"{NAME} (upload)", status="saving")
    await world.undo("one")
    assert world.glance.images == {}


async def test_an_upload_of_another_vnf_is_waited_for(world: World) -> None:
    world.glance.add("theirs", "slipway", FILE, "vnf-two", name=f"{NAME} (upload)", status="saving")
    looks = 0

    def meanwhile(asked: Asked) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            world.glance.images["theirs"] |= {"status": "active", "name": NAME}

    world.glance.meanwhile = meanwhile
    await world.upload("one")
    assert world.glance.uploads() == []
    assert world.tags() == [{"slipway", FILE, "vnf-one", "vnf-two"}]


@pytest.mark.parametrize("status", ["queued", "saving"])
async def test_one_that_was_broken_off_is_not_waited_for_for_ever(world: World, status: str) -> None:
    world.glance.add("theirs", "slipway", FILE, "vnf-two", name=f"{NAME} (upload)", status=status)
    world.use(ImageTimeouts(tag_settle=0.01, create_race=0.02, queued=0.05, saving=0.05))
    await world.upload("one")
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]


async def test_a_tag_that_somebody_elses_writing_took_away_is_written_again(world: World) -> None:
    await world.upload("one")
    (image,), lost = world.glance.images.values(), 0

    def meanwhile(asked: Asked) -> None:
        nonlocal lost
        if asked.method == "GET" and "vnf-two" in image["tags"] and lost < 2:
            image["tags"].remove("vnf-two")
            lost += 1

    world.glance.meanwhile = meanwhile
    await world.upload("two")
    assert lost == 2
    assert world.tags() == [{"slipway", FILE, "vnf-one", "vnf-two"}]


async def test_an_image_that_somebody_renamed_gets_its_name_back(world: World) -> None:
    """By its name Heat finds it."""
    world.glance.add("theirs", "slipway", FILE, "vnf-two", name="my debian")
    await world.upload("one")
    assert [one["name"] for one in world.glance.images.values()] == [NAME]
    assert world.glance.uploads() == []


async def test_an_image_that_is_about_to_go_is_not_used(world: World) -> None:
    world.glance.add("going", "slipway", FILE, "leaving-two", name=NAME)

    def meanwhile(asked: Asked) -> None:
        if asked.method == "GET" and "vnf-one" in world.glance.images.get("going", {}).get("tags", ()):
            del world.glance.images["going"]

    world.glance.meanwhile = meanwhile
    await world.upload("one")
    assert len(world.glance.uploads()) == 1
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]


async def test_unless_its_removal_was_broken_off(world: World) -> None:
    world.glance.add("going", "slipway", FILE, "leaving-two", name=NAME)
    world.use(ImageTimeouts(tag_settle=0.01, leaving=0.05))
    await world.upload("one")
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]
    await world.release("two")
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]


async def test_who_joins_while_the_last_user_leaves_keeps_the_image(world: World) -> None:
    await world.upload("one")

    def meanwhile(asked: Asked) -> None:
        if asked.method == "DELETE" and asked.path.endswith("/tags/vnf-one"):
            (image,) = world.glance.images.values()
            image["tags"].append("vnf-two")

    world.glance.meanwhile = meanwhile
    await world.release("one")
    assert world.tags() == [{"slipway", FILE, "vnf-two"}]


async def test_a_removal_that_a_crash_broke_off_is_gone_on_with(world: World) -> None:
    world.glance.add("going", "slipway", FILE, "leaving-one", name=NAME)
    await world.release("one")
    assert world.glance.images == {}


async def test_another_file_in_the_package_is_an_error_and_leaves_nothing(world: World) -> None:
    vnf = world.vnf("one")
    vnf.open = lambda: BytesIO(CONTENT[:-1] + b"!")
    with pytest.raises(StepError, match=r"Files/debian\.img of the package is not the file .* Cure: "):
        await world.upload(vnf)
    assert world.glance.images == {}


class Endless(BytesIO):
    """A file of which somebody reads the second piece when the test says so."""

    def __init__(self) -> None:
        super().__init__(CONTENT)
        self.reading, self.go_on = threading.Event(), threading.Event()

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            self.reading.set()
            assert self.go_on.wait(30)
        return super().read(size)


async def test_who_watches_sees_how_far_an_upload_is(world: World) -> None:
    world.use(ImageTimeouts(tag_settle=0.01, create_race=0.02, progress=0.01))
    vnf, file = world.vnf("one"), Endless()
    vnf.open = lambda: file
    task = asyncio.ensure_future(world.upload(vnf))
    assert await asyncio.to_thread(file.reading.wait, 30)
    assert vnf.told[0] == "0 of 3 MiB"
    file.go_on.set()
    await task


async def test_a_cancelled_upload_ends_at_once_and_is_taken_back(world: World) -> None:
    vnf, file = world.vnf("one"), Endless()
    vnf.open = lambda: file
    task = asyncio.ensure_future(world.upload(vnf))
    assert await asyncio.to_thread(file.reading.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    file.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not world.glance.content
    assert world.tags() == [{"slipway", FILE, "vnf-one"}]
    await world.undo("one")
    assert world.glance.images == {}


async def test_an_upload_whose_answer_got_lost_counts(world: World) -> None:
    world.glance.replies["PUT", "/file"] = Reply(504, {"message": "Gateway Timeout"})
    await world.upload("one")
    assert [one["name"] for one in world.glance.images.values()] == [NAME]


async def test_one_that_glance_refuses_is_told_and_leaves_nothing(world: World) -> None:
    world.glance.replies["PUT", "/file"] = Reply(413, {"message": "Image exceeds the storage quota"})
    with pytest.raises(VimError, match="Image exceeds the storage quota") as caught:
        await world.upload("one")
    assert caught.value.fault is VimFault.QUOTA
    assert world.glance.images == {}


async def test_an_image_of_another_project_is_none_of_ours(world: World) -> None:
    """An administrator sees it."""
    world.glance.add("theirs", "slipway", FILE, "vnf-one", name=NAME, owner="other")
    await world.upload("one")
    await world.release("one")
    assert list(world.glance.images) == ["theirs"]


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"disk_format": "raw"}, "is in Glance as raw in bare .* says qcow2 in bare. Cure: let disk_format"),
        ({"status": "deactivated"}, "is deactivated in Glance. Cure: have it reactivated"),
    ],
)
async def test_what_cannot_be_used_is_said_with_the_cure(world: World, there: dict[str, str], said: str) -> None:
    world.glance.add("theirs", "slipway", FILE, "vnf-two", **{"name": NAME, **there})
    with pytest.raises(VimError, match=said):
        await world.upload("one")
    assert list(world.glance.images) == ["theirs"]


async def test_when_glance_takes_no_more_tags_the_setting_is_named(world: World) -> None:
    world.glance.add("theirs", "slipway", FILE, "vnf-two", name=NAME)
    world.glance.most_tags = 3
    with pytest.raises(VimError, match=r"allows no more\. Cure: raise image_tag_quota"):
        await world.upload("one")


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ({"images": [{"id": 5, "status": "active"}]}, r"images\[0\]\.id: Expected `str`"),
        ({"images": [{"id": "a", "status": "active", "tags": [5]}]}, r"images\[0\]\.tags"),
        ({}, "`images`"),
        (b"<html>", "no JSON: it begins with '<html>'"),
        ({"images": [{"id": "a", "status": "active"}], "next": "/v2/images?marker=a"}, "the list has no end"),
    ],
)
async def test_a_list_that_makes_no_sense_does_not_mean_that_there_is_no_image(
    world: World, images: Any, words: str
) -> None:
    """Else another would be made, or one be left for ever."""
    world.glance.replies["GET", "/images"] = Reply(200, images)
    with pytest.raises(VimError, match=words) as caught:
        await world.upload("one")
    assert caught.value.fault is VimFault.TEMPORARY
    with pytest.raises(VimError, match=words):
        await world.release("one")
    assert not world.glance.images


async def test_an_upload_that_is_redirected_is_not_done(world: World) -> None:
    world.glance.replies["PUT", "/file"] = Reply(307, {}, {"Location": "https://elsewhere/"})
    with pytest.raises(VimError, match="which is a redirect"):
        await world.upload("one")


async def test_an_image_that_an_administrator_deactivated_stays_whoever_leaves(world: World) -> None:
    """Else the next VNF would bring back what was taken out of use."""
    world.glance.add("old", "slipway", FILE, "vnf-one", "vnf-two", name=NAME, status="deactivated")
    await world.release("one")
    assert world.tags() == [{"slipway", FILE, "vnf-two"}]
    await world.release("two")
    assert world.tags() == [{"slipway", FILE}]
    with pytest.raises(VimError, match="is deactivated in Glance"):
        await world.upload("three")


async def test_an_image_that_volumes_of_others_are_made_of_stays_and_the_next_vnf_uses_it(world: World) -> None:
    """Where Cinder clones images (RBD), Glance removes none that has clones."""
    world.use(dataclasses.replace(QUICK, in_use=0.05))
    await world.upload("one")
    ((id_, _),) = world.glance.images.items()
    world.glance.kept.add(id_)
    await world.release("one")
    assert world.tags() == [{"slipway", FILE}]
    await world.upload("two")
    assert world.glance.uploads() == [id_]
    world.glance.kept.clear()
    await world.release("two")
    assert world.glance.images == {}


async def test_a_volume_that_is_just_being_removed_is_waited_for(world: World) -> None:
    await world.upload("one")
    ((id_, _),) = world.glance.images.items()
    world.glance.kept.add(id_)

    def meanwhile(asked: Asked) -> None:
        if sum(one.method == "DELETE" and one.path.endswith(id_) for one in world.glance.asked) == 2:
            world.glance.kept.clear()

    world.glance.meanwhile = meanwhile
    await world.release("one")
    assert world.glance.images == {}
