"""The rule language: model, loading, evaluation, policy, explanation, validation."""

from nfd.rules.engine import Outcome as Outcome
from nfd.rules.engine import RuleResult as RuleResult
from nfd.rules.engine import after as after
from nfd.rules.engine import evaluate as evaluate
from nfd.rules.engine import evaluate_all as evaluate_all
from nfd.rules.engine import matched_inputs as matched_inputs
from nfd.rules.model import Expression as Expression
from nfd.rules.model import Rule as Rule
from nfd.rules.model import RuleObject as RuleObject
from nfd.rules.model import Taint as Taint
from nfd.rules.model import Term as Term
from nfd.rules.output import Conflict as Conflict
from nfd.rules.output import Kept as Kept
from nfd.rules.output import Output as Output
from nfd.rules.output import RuleOutput as RuleOutput
from nfd.rules.output import combine as combine
from nfd.rules.output import execute as execute
from nfd.rules.policy import Policy as Policy
from nfd.rules.sets import Matched as Matched
from nfd.rules.sets import Sets as Sets
