"""How experiments/integer-results writes shares: what is not all of them is never 100%. The argument is the script."""

import runpy
import sys
import unittest

percent = runpy.run_path(sys.argv.pop(1))["percent"]


class PercentTest(unittest.TestCase):
    def test_only_one_is_a_hundred(self):
        shares = [percent(0.999996), percent(0.9999999, 3), percent(0.99984), percent(1), percent(0)]
        self.assertEqual(shares, ["99.99%", "99.999%", "99.98%", "100.00%", "0.00%"])


if __name__ == "__main__":
    unittest.main()
