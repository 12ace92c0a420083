"""Develops files in a fresh interpreter and its forks and prints the SHA-256 of every variant: see test_determinism.

Standard input is JSON: `sources` (paths), `recipe`, and `jobs`, one per process. The last job runs in this process, the
others in children that are forked as soon as the engine is imported; `alone` is a recipe for the last job and the first
source. Standard output is a line of JSON per job.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from darkroom.domain.recipes.recipes import Recipe
from darkroom.imaging import develop


def digests(sources: dict[str, bytes], recipe: Recipe, job: dict[str, Any]) -> dict[str, str]:
    """The variants of all sources, after and in parallel with whatever else the job says."""
    os.sched_setaffinity(0, job["processors"])
    if job["another_job_before"]:
        develop([*sources.values()][-1], recipe.model_copy(update={"variants": recipe.variants[:1]}))
    turned = job["first_variant"]
    recipe = recipe.model_copy(update={"variants": recipe.variants[turned:] + recipe.variants[:turned]})
    hashes: dict[str, str] = {}

    def run(name: str) -> None:
        developed = develop(sources[name], recipe, overlay_of=lambda _: sources["drawing"])
        hashes.update(
            {f"{name} {variant.name}": hashlib.sha256(variant.body).hexdigest() for variant in developed.variants}
        )
        hashes[f"{name} placeholder"] = repr(developed.placeholder)
        if developed.attention is not None:
            hashes[f"{name} attention"] = repr(developed.attention)

    threads = [threading.Thread(target=run, args=(name,)) for name in sources]
    for thread in threads:
        thread.start()
        if not job["two_jobs_at_once"]:
            thread.join()
    for thread in threads:
        thread.join()
    return hashes


def main() -> None:
    """Runs the jobs."""
    work = json.load(sys.stdin)
    sources = {Path(path).stem: Path(path).read_bytes() for path in work["sources"]}
    recipe = Recipe.model_validate(work["recipe"])
    *for_children, own = work["jobs"]
    for job in for_children:
        child = os.fork()
        if child == 0:
            line = json.dumps(digests(sources, recipe, job)) + "\n"
            os.write(sys.stdout.fileno(), line.encode())
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, "a child died"
    hashes = digests(sources, recipe, own)
    first = dict([*sources.items()][:1])
    if work["alone"]:
        hashes = digests(first, Recipe.model_validate(work["alone"]), {**own, "first_variant": 0}) | hashes
    print(json.dumps(hashes))


if __name__ == "__main__":
    main()
