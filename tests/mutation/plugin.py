"""A pytest plugin that puts the fault into what the tests import: `-p tests.mutation.plugin`."""

import json
import os

from tests.mutation.operators import Mutant
from tests.mutation.trial import MUTANT_VARIABLE, put_in

put_in(Mutant(**json.loads(os.environ[MUTANT_VARIABLE])), ("archsim", "rtl"))
