"""Says which engines this Python can ask over fleet tables, and what they lack: `acltape doctor` runs this."""
import importlib.metadata
import json
import os
import shutil
import sys

# By engine: the packages that it needs.
PACKAGES = {"duckdb": ("pyarrow", "duckdb"), "spark": ("pyarrow", "duckdb", "pyspark")}
_SUBJECTS = {"duckdb": "fleets", "spark": "fleets on Spark"}


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def java_named():
    """The program that Spark starts, as a path or a word, whether it is there or not."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else "java"


def java():
    """Its path, None where it is not there."""
    return shutil.which(java_named())


def of_engine(packages):
    """What was found, and the commands that bring the rest."""
    versions = {package: _version(package) for package in packages}
    missing = [package for package, version in versions.items() if version is None]
    found = [f"{package} {version}" if version else f"no {package}" for package, version in versions.items()]
    remedies = [f"{sys.executable} -m pip install {' '.join(missing)}"] if missing else []
    if "pyspark" in packages:
        found.append(java() or "no Java")
        if java() is None:
            remedies.append("apt-get install default-jre-headless")
    return f"{sys.executable}: {', '.join(found)}", "; ".join(remedies)


def main():
    for engine, packages in PACKAGES.items():
        found, remedy = of_engine(packages)
        print(json.dumps({"subject": _SUBJECTS[engine], "found": found, "remedy": remedy}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
