"""Publishing what was found: planning is pure, each publisher is one thin edge."""
