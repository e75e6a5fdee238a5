"""Node feature discovery: facts about a host as typed values, and labels of them."""

from nfd._version import __version__ as __version__
