# SPDX-License-Identifier: Apache-2.0
"""What would catch an exception at a failing call, in every form. `fail(n)` fails with a request of its own; the comment behind it says what must be
known about its handlers, the innermost first: "except DOES TYPES", "with TYPE". A "?" behind DOES: there is a condition before it.
"""
import contextlib
import os
import sys

import cudrv

cudrv.init()
numbers = []


def fail(n):
    cudrv.cuda.cuMemAlloc_v2(cudrv.ctypes.byref(cudrv.u64()), cudrv.ctypes.c_size_t(n << 30))   # no exception: the program goes on
    numbers.append(n)


def nothing():
    fail(101)  # handlers: none


def one():
    try:
        fail(102)  # handlers: except goes-on ValueError
    except ValueError:
        print("no")
    print("behind it")


def several():
    try:
        fail(103)  # handlers: except goes-on KeyError, ValueError; except raises OutOfMemoryError; except exits Exception; except goes-on -
    except (KeyError, ValueError):
        return 1
    except cudrv.ctypes.OutOfMemoryError as e:
        raise RuntimeError("again") from e
    except Exception as e:
        print(e)
        sys.exit(1)
    except:
        pass
    numbers.append(2)
    print("behind it")


def nested():
    try:
        try:
            fail(104)  # handlers: except raises KeyError; except goes-on RuntimeError
        except KeyError:
            raise
        finally:
            print("finally")
    except RuntimeError as e:
        if numbers:
            print(e)
    numbers.append(0)


def inner():
    try:
        fail(105)  # handlers: except exits BaseException; except goes-on Exception
    except BaseException:
        os._exit(3)


def outer():
    try:
        inner()
    except Exception:
        return None


def scoped():
    with contextlib.suppress(KeyError), open(os.devnull, encoding="utf-8"):
        fail(106)  # handlers: with TextIOWrapper; with suppress


def in_a_handler():
    try:
        try:
            raise KeyError(1)
        except KeyError:
            fail(107)  # handlers: except goes-on RuntimeError
    except RuntimeError:
        print("no")


def in_a_loop():
    for turn in range(2):
        try:
            if turn == 1:
                fail(108)  # handlers: except goes-on RuntimeError
        except RuntimeError:
            continue


def behind():
    try:
        numbers.append(0)
    except RuntimeError:
        print("no")
    fail(109)  # handlers: none


def tries():
    attempts = 0
    while True:
        try:
            fail(110)  # handlers: except exits? RuntimeError
            break
        except RuntimeError:
            attempts += 1
            if attempts > 3:
                sys.exit(2)


def may_raise():
    try:
        fail(111)  # handlers: except raises? Exception
    except Exception as e:
        if "memory" not in str(e):
            raise
        numbers.append(0)


def by_name():
    kinds = (KeyError, OSError)
    try:
        fail(112)  # handlers: except exits ?
    except kinds:
        raise SystemExit(1)


def generator():
    try:
        yield fail(113)  # handlers: except goes-on RuntimeError; except goes-on Exception
    except RuntimeError:
        print("no")


def finally_only():
    try:
        fail(114)  # handlers: none
    finally:
        try:
            numbers.append(0)
        except ValueError:
            print("no")


@contextlib.contextmanager
def scope():
    yield


def generated():
    with scope():
        fail(115)  # handlers: with _GeneratorContextManager


class Step:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def run(self):
        with self as step:
            try:
                fail(116)  # handlers: except goes-on Exception; with Step
            except Exception as e:
                print(step, e)
                return [x for x in numbers if x]


def go():
    for f in (nothing, one, several, nested, outer, scoped, in_a_handler, in_a_loop, behind, tries, may_raise, by_name, finally_only, generated, Step().run):
        f()
        f()
    try:
        list(generator())
    except Exception:
        print("no")


go()
