"""Says which engines this Python can ask over fleet tables, and what they lack: `acltape doctor` runs this."""
import importlib.metadata
import json
import os
import shutil
import sys

ENGINES = {"fleets": ("pyarrow", "duckdb"), "fleets on Spark": ("pyarrow", "duckdb", "pyspark")}


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def java():
    """The program that Spark starts, or None."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


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
    for subject, packages in ENGINES.items():
        found, remedy = of_engine(packages)
        print(json.dumps({"subject": subject, "found": found, "remedy": remedy}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
