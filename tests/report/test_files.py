"""Reports are written as a whole or not at all."""

import resource

import pytest

import privug as pv


@pytest.fixture(scope="module")
def result():
    return pv.Attack(lambda x: x, {"x": pv.Bernoulli(0.2)}, "x").run(pv.equals(1))


def test_a_full_disk_leaves_no_half_of_a_report(tmp_path, result):
    target = tmp_path / "report.json"
    target.write_text("the report before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(pv.ArgumentError, match=r"report\.json cannot be written: File too large"):
            result.save(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert target.read_text() == "the report before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_report_takes_the_place_of_the_one_before_where_links_lead(tmp_path, result):
    target, link = tmp_path / "report.txt", tmp_path / "link.txt"
    target.write_text("the report before")
    link.symlink_to(target)
    result.save(link)
    assert link.is_symlink()
    assert target.read_text() == f"{result}\n"
