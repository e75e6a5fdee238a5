"""HostRoot, the only door to host files: the running host, a mounted root, a capture."""

from nfd.hostroot.paths import NOT_THERE as NOT_THERE
from nfd.hostroot.paths import trim as trim
from nfd.hostroot.record import Recorder as Recorder
from nfd.hostroot.root import DEFAULT_LIMIT as DEFAULT_LIMIT
from nfd.hostroot.root import HostDir as HostDir
from nfd.hostroot.root import HostRoot as HostRoot
