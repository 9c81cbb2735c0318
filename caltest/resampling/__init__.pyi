from ._brownian import ks_log_pvalue as ks_log_pvalue
from ._brownian import ks_pvalue as ks_pvalue
from ._brownian import kuiper_log_pvalue as kuiper_log_pvalue
from ._brownian import kuiper_pvalue as kuiper_pvalue
from ._multiple_testing import correct_pvalues as correct_pvalues
from ._poisson_binomial import PoissonBinomial as PoissonBinomial
from ._schemes import Consistency as Consistency
