"""The user's file, run as a module."""

import sys
import traceback
from importlib import util
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import privug as pv


def loaded(file: Path) -> ModuleType:
    """Run the user's file as a module; its own errors are shown with its own lines only."""
    # A name of its own: the file may be called as a library is, numpy.py for one.
    name = f"_privug_file_{file.stem}"
    loader = SourceFileLoader(name, str(file))
    module = util.module_from_spec(ModuleSpec(name, loader, origin=str(file)))
    module.__file__ = str(file)
    sys.modules[name] = module
    folder = str(file.parent)
    # Its neighbours come first, as for `python FILE`, unless it would itself be taken for a library.
    sys.path.insert(len(sys.path) if PathFinder.find_spec(file.stem) else 0, folder)
    try:
        loader.exec_module(module)
    except pv.PrivugError:
        raise
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise pv.ProgramError(f"{file}{line}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(folder)
    return module
