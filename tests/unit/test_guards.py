"""Each guard that is removed by the proof is found where its entry says, and so are its tests."""

from proof.guards import problem_of, read_guards


def test_every_guard_is_in_its_file_once_and_has_a_test() -> None:
    guards = read_guards()
    assert {guard.name: problem for guard in guards if (problem := problem_of(guard))} == {}
    assert len({guard.name for guard in guards}) == len(guards)
