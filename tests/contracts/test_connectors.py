"""Every connector keeps the contract of `connectors/contract.py`; each has a file in `connector_cases/`."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from connector_case import ConnectorCase, Outcome, cases

from connectors.contract import Chunk, Connector, FileInfo, Fragment, Opened
from connectors.memory import InMemory
from connectors.paths import resolve
from connectors.registry import BUILT_IN, choose
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError

CASES = cases()
ON_DISK = [case for case in CASES if case.write is not None]


@pytest.fixture(params=CASES, ids=lambda case: type(case.connector).__name__ + "-" + case.name)
def case(request: pytest.FixtureRequest) -> ConnectorCase:
    found: ConnectorCase = request.param
    return found


@pytest.fixture(params=ON_DISK, ids=lambda case: type(case.connector).__name__ + "-" + case.name)
def disk_case(request: pytest.FixtureRequest) -> ConnectorCase:
    found: ConnectorCase = request.param
    return found


@dataclasses.dataclass(frozen=True)
class Source:
    """The data set of a case, scanned as an index does."""

    connector: Connector
    opened: Opened
    schema: pa.Schema
    fragments: Sequence[Fragment]

    def chunks(
        self,
        fragment: Fragment,
        schema: pa.Schema | None = None,
        start: int = 0,
        stop: int | None = None,
        max_rows: int = 1 << 20,
    ) -> Iterator[Chunk]:
        wanted = self.schema if schema is None else schema
        end = fragment.rows if stop is None else stop
        return self.connector.read(self.opened, fragment, wanted, start, end, max_rows)

    def rows(self, fragment: Fragment, schema: pa.Schema | None = None, **range_of: Any) -> pa.Table:
        wanted = self.schema if schema is None else schema
        return joined([chunk.batch for chunk in self.chunks(fragment, schema, **range_of)], wanted)

    def everything(self) -> pa.Table:
        return joined([chunk.batch for f in self.fragments for chunk in self.chunks(f)], self.schema)


def joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The batches, each of which has exactly the schema, as one table."""
    for batch in batches:
        assert batch.schema.equals(schema, check_metadata=True)
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema)


def files_of(case: ConnectorCase, folder: Path) -> tuple[Store, tuple[FileInfo, ...]]:
    if case.write is None:
        return Store(), case.connector.files()  # type: ignore[attr-defined]
    listing = resolve([str(path) for path in case.write(folder)])
    return listing.store, listing.files


def scanned(connector: Connector, store: Store, files: Sequence[FileInfo]) -> Source:
    groups = [files] if connector.traits.scans == "listing" else [[info] for info in files]
    fragments: list[Fragment] = []
    schemas: list[pa.Schema] = []
    meta: dict[str, Any] = {}
    for number, group in enumerate(groups):
        scan = connector.scan(store, group)
        arrays = (scan.file, scan.offset, scan.length, scan.rows)
        assert len({len(array) for array in arrays}) == 1
        assert all(array.dtype == np.int64 for array in arrays)
        assert (np.diff(scan.file) >= 0).all()
        assert (scan.rows >= 0).all()
        fragments += [
            Fragment(f + number, o, n, r) for f, o, n, r in zip(*(a.tolist() for a in arrays), strict=True)
        ]
        schemas.append(scan.schema)
        meta |= scan.meta
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    return Source(connector, Opened(store, files, meta), schema, fragments)


def source_of(case: ConnectorCase, folder: Path) -> Source:
    return scanned(case.connector, *files_of(case, folder))


def test_a_connector_is_a_frozen_fact_that_travels_to_other_processes(
    case: ConnectorCase, tmp_path: Path
) -> None:
    connector = case.connector
    assert isinstance(connector, Connector)
    kind: type[object] = type(connector)
    assert dataclasses.is_dataclass(kind)
    first = dataclasses.fields(kind)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(connector, first, None)
    store, files = files_of(case, tmp_path)
    copy = pickle.loads(pickle.dumps(connector))
    assert scanned(copy, store, files).everything().equals(case.expected)


def test_the_registry_finds_a_connector_by_name_and_suffix(disk_case: ConnectorCase) -> None:
    connector = disk_case.connector
    assert type(choose(connector.name, [])) is type(connector)
    assert BUILT_IN[connector.name].suffixes == connector.suffixes
    for suffix in connector.suffixes:
        assert suffix == suffix.lower()
        assert suffix.startswith(".")
        assert type(choose(None, [FileInfo(f"/data/Name.1{suffix.upper()}", 1)])) is type(connector)
    assert [len(s) for s in connector.suffixes] == sorted((len(s) for s in connector.suffixes), reverse=True)


def test_every_format_of_the_registry_has_a_case() -> None:
    assert {case.connector.name for case in ON_DISK} == set(BUILT_IN)


def test_the_fragments_in_order_are_the_rows(case: ConnectorCase, tmp_path: Path) -> None:
    source = source_of(case, tmp_path)
    assert source.schema == case.expected.schema
    assert sum(fragment.rows for fragment in source.fragments) == case.expected.num_rows
    assert source.everything().equals(case.expected)
    assert all(not chunk.bad for fragment in source.fragments for chunk in source.chunks(fragment))


def test_a_scan_repeated_finds_the_same(case: ConnectorCase, tmp_path: Path) -> None:
    store, files = files_of(case, tmp_path)
    first, second = scanned(case.connector, store, files), scanned(case.connector, store, files)
    assert first.fragments == second.fragments
    assert first.schema == second.schema
    assert first.opened.meta == second.opened.meta


def test_fragments_are_independent_and_repeatable(case: ConnectorCase, tmp_path: Path) -> None:
    source = source_of(case, tmp_path)
    parts = [source.rows(fragment) for fragment in source.fragments]
    for number in reversed(range(len(parts))):
        fresh = dataclasses.replace(source, connector=pickle.loads(pickle.dumps(case.connector)))
        assert fresh.rows(source.fragments[number]).equals(parts[number])
        assert source.rows(source.fragments[number]).equals(parts[number])


def test_threads_that_read_at_once_do_not_disturb_each_other(case: ConnectorCase, tmp_path: Path) -> None:
    source = source_of(case, tmp_path)
    parts = [source.rows(fragment) for fragment in source.fragments]
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(source.rows, [*source.fragments] * 8))
    assert all(got.equals(parts[number % len(parts)]) for number, got in enumerate(again))


def test_any_range_of_rows_is_that_range_in_chunks_that_are_small_enough(
    case: ConnectorCase, tmp_path: Path
) -> None:
    source = source_of(case, tmp_path)
    for fragment in source.fragments:
        whole = source.rows(fragment)
        edges = sorted(
            {0, 1, 2, fragment.rows // 2, fragment.rows - 1, fragment.rows} & set(range(fragment.rows + 1))
        )
        for start in edges:
            for stop in (edge for edge in edges if edge >= start):
                for max_rows in (1, 3, 1000) if fragment.rows < 100 else (700,):
                    chunks = list(source.chunks(fragment, start=start, stop=stop, max_rows=max_rows))
                    assert all(0 < chunk.batch.num_rows <= max_rows for chunk in chunks)
                    got = joined([chunk.batch for chunk in chunks], source.schema)
                    assert got.equals(whole.slice(start, stop - start)), (start, stop, max_rows)


def test_only_the_columns_wanted_come_in_the_order_wanted(case: ConnectorCase, tmp_path: Path) -> None:
    source = source_of(case, tmp_path)
    fields = list(source.schema)
    wanted = [pa.schema([one]) for one in fields]
    wanted += [pa.schema(fields[::-1]), pa.schema([])]
    for schema in wanted:
        for fragment in source.fragments:
            got = source.rows(fragment, schema)
            assert got.num_rows == fragment.rows
            assert got.equals(source.rows(fragment).select(schema.names))


def test_a_column_that_the_files_lack_is_null(case: ConnectorCase, tmp_path: Path) -> None:
    source = source_of(case, tmp_path)
    lacking = pa.field("not in any file", pa.list_(pa.int8()))
    for schema in (pa.schema([lacking]), pa.schema([lacking, source.schema.field(0)])):
        for fragment in source.fragments:
            got = source.rows(fragment, schema)
            assert got.num_rows == fragment.rows
            assert got[0].null_count == fragment.rows


def test_a_remote_store_gives_the_same_rows(disk_case: ConnectorCase, tmp_path: Path) -> None:
    assert disk_case.write is not None
    paths = disk_case.write(tmp_path)
    fs = fsspec.filesystem("memory")
    try:
        for path in paths:
            fs.pipe(f"/remote/{path.relative_to(tmp_path)}", path.read_bytes())
        listing = resolve([f"memory://remote/{path.relative_to(tmp_path)}" for path in paths])
        source = scanned(disk_case.connector, listing.store, listing.files)
        assert source.everything().equals(disk_case.expected)
    finally:
        fs.rm("/remote", recursive=True)


def test_no_file_stays_open_and_none_is_changed(disk_case: ConnectorCase, tmp_path: Path) -> None:
    store, files = files_of(disk_case, tmp_path)
    before = {info.path: Path(info.path).read_bytes() for info in files}
    source = scanned(disk_case.connector, store, files)
    for fragment in source.fragments:
        list(source.chunks(fragment))
        abandoned = source.chunks(fragment, max_rows=1)
        next(abandoned)
        del abandoned
    assert not [path for path in open_files() if path.startswith(str(tmp_path))]
    assert {info.path: Path(info.path).read_bytes() for info in files} == before


def open_files() -> list[str]:
    """The paths of this process's descriptors (Linux)."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(link))  # noqa: PTH115
        except FileNotFoundError:
            continue
    return links


def test_a_missing_file_is_an_error_that_names_it(disk_case: ConnectorCase, tmp_path: Path) -> None:
    store, files = files_of(disk_case, tmp_path)
    source = scanned(disk_case.connector, store, files)
    Path(files[-1].path).unlink()
    fresh = pickle.loads(pickle.dumps(disk_case.connector))
    with pytest.raises(ConnectorError, match="does not exist") as caught:
        raise_bad_rows(dataclasses.replace(source, connector=fresh))
    assert files[-1].path in str(caught.value)
    assert caught.value.hint
    if disk_case.connector.traits.scans == "file":
        with pytest.raises(ConnectorError, match="does not exist"):
            scanned(fresh, store, files)


def raise_bad_rows(source: Source) -> None:
    """Read everything; a bad row raises what is wrong with it."""
    for fragment in source.fragments:
        for chunk in source.chunks(fragment):
            for bad in chunk.bad:
                raise bad.error


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "foreign": lambda content: b"\x00\x01 no format begins like this \xfe\xff" * 40,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_has_the_outcome_that_the_case_says(
    disk_case: ConnectorCase, damage: str, tmp_path: Path
) -> None:
    _, files = files_of(disk_case, tmp_path)
    path = Path(files[-1].path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    check_outcome(getattr(disk_case, damage), disk_case, [info.path for info in files])


def check_outcome(outcome: Outcome, case: ConnectorCase, paths: Sequence[str]) -> None:
    listing = resolve(paths)
    if outcome == "error":
        with pytest.raises(DataError) as caught:
            scanned(case.connector, listing.store, listing.files).everything()
        assert paths[-1] in str(caught.value)
        assert caught.value.hint
    elif outcome == "bad rows":
        with pytest.raises(DataError) as caught:
            raise_bad_rows(scanned(case.connector, listing.store, listing.files))
        assert paths[-1] in str(caught.value)
    elif outcome == "fewer rows":
        got = scanned(case.connector, listing.store, listing.files).everything()
        assert got.num_rows < case.expected.num_rows
        columns = [name for name in case.expected.column_names if name in got.column_names]
        assert got.select(columns).equals(case.expected.slice(0, got.num_rows).select(columns))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_changes_after_the_scan_never_gives_other_rows(
    disk_case: ConnectorCase, damage: str, tmp_path: Path
) -> None:
    if getattr(disk_case, damage) == "not applicable":
        pytest.skip("any content of a file is a row")
    store, files = files_of(disk_case, tmp_path)
    source = scanned(disk_case.connector, store, files)
    path = Path(files[-1].path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    fresh = dataclasses.replace(source, connector=pickle.loads(pickle.dumps(disk_case.connector)))
    with pytest.raises((DataError, ConnectorError)) as caught:
        raise_bad_rows(fresh)
    assert str(path) in str(caught.value)


def test_choosing_imports_no_connector_that_is_not_chosen() -> None:
    program = (
        "import sys, connectors.registry\n"
        "places = [f.place.split(':')[0] for f in connectors.registry.BUILT_IN.values()]\n"
        "assert not [place for place in places if place in sys.modules]\n"
        "connectors.registry.choose('arrow', [])\n"
        "assert [place for place in places if place in sys.modules] == ['connectors.arrow_ipc']\n"
        "assert 'torch' not in sys.modules\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": paths})


def test_the_connector_of_a_table_is_not_found_by_suffix() -> None:
    assert InMemory(pa.table({"a": [1]})).suffixes == ()
    assert "memory" not in BUILT_IN
