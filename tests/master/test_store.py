"""The store of NodeFeatures: equal sets once, merged as upstream merges."""

from hypothesis import given
from hypothesis import strategies as st

from nfd.features import Features, merge
from nfd.master.store import FeatureStore, MergedSets, Pool, StoredFeature

CPU = Features.of(attributes={"cpu.model": {"vendor_id": "AMD", "family": "25"}})


def put(store: FeatureStore, name: str, features: Features, **labels: str) -> None:
    put_as(store, name, name.split(".", maxsplit=1)[0], features, labels)


def put_as(
    store: FeatureStore,
    name: str,
    node: str,
    features: Features = CPU,
    labels: dict[str, str] | None = None,
) -> tuple[StoredFeature, StoredFeature | None]:
    return store.put(
        ("nfd", name),
        node,
        uid="u",
        features=features.to_spec(),
        labels=labels or {},
        about={},
    )


def merged_of(store: FeatureStore, node: str) -> MergedSets:
    return MergedSets(store.pool, store.of_node(node))


def test_equal_sets_are_kept_once() -> None:
    """A thousand nodes with one CPU model hold one set."""
    store = FeatureStore()
    for i in range(1000):
        put(store, f"n{i}", CPU, a="1")

    assert len(store.pool) == 3  # the set, the labels, what else
    assert merged_of(store, "n1").identity(("cpu.model",)) == merged_of(
        store, "n2"
    ).identity(("cpu.model",))


def test_content_that_did_not_change_is_seen() -> None:
    """Only managedFields or a resourceVersion moved: no reason to look (H45)."""
    store = FeatureStore()
    put(store, "n1", CPU, a="1")

    same, before = put_as(store, "n1", "n1", labels={"a": "1"})
    other, _ = put_as(store, "n1", "n1", labels={"a": "2"})

    assert before is not None
    assert before.same_content(same)
    assert not same.same_content(other)


def test_dropped_objects_leave_nothing_behind() -> None:
    """The pool counts its users."""
    store = FeatureStore()
    put(store, "n1", CPU)
    put(store, "n1.vendor", CPU)
    put(store, "n1", Features())

    assert store.drop(("nfd", "n1")) is not None
    assert store.drop(("nfd", "n1.vendor")) is not None
    assert store.drop(("nfd", "n1.vendor")) is None

    assert len(store.pool) == 0
    assert not store.nodes


def test_object_that_moves_to_another_node() -> None:
    """Its node-name label was changed."""
    store = FeatureStore()
    put_as(store, "x", "n1")
    put_as(store, "x", "n2")

    assert store.of_node("n1") == []
    assert len(store.of_node("n2")) == 1


def test_keys_with_capitals_are_found() -> None:
    """H35: a third party's `Acme.Config` is reachable as `acme.config`."""
    store = FeatureStore()
    put(store, "n1", Features.of(attributes={"Acme.Config": {"a": "1"}}))

    sets = merged_of(store, "n1").sets({}, {})

    assert sets.attributes["acme.config"] == {"a": "1"}
    assert "acme.config" not in sets.flags


def test_long_values_are_packed_and_come_back() -> None:
    """A kernel configuration of 9,000 options packs well."""
    pool = Pool()
    value = {f"OPTION_{i}": "y" for i in range(9000)}

    number = pool.add(value)
    pool.forget_parsed()

    assert pool.get(number) == value
    assert pool.size < 40_000


KEYS = st.sampled_from(["a.b", "c.d"])
TEXTS = st.sampled_from(["", "1", "2"])
ELEMENTS = st.dictionaries(TEXTS, TEXTS, max_size=2)
FEATURES = st.builds(
    Features.of,
    flags=st.dictionaries(KEYS, st.sets(TEXTS)),
    attributes=st.dictionaries(KEYS, ELEMENTS),
    instances=st.dictionaries(KEYS, st.lists(ELEMENTS, max_size=2)),
)


@given(st.lists(FEATURES, max_size=3))
def test_merged_like_features(objects: list[Features]) -> None:
    """The packed merge and `features.merge` agree, empty sets included."""
    store = FeatureStore()
    for i, features in enumerate(objects):
        put(store, f"n1.{i}", features)

    sets = merged_of(store, "n1").sets({}, {})

    assert merge(objects) == Features(
        {k: sets.flags[k] for k in sets.flags},
        {k: sets.attributes[k] for k in sets.attributes},
        {k: sets.instances[k] for k in sets.instances},
    )
