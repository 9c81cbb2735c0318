from ._brownian import ks_log_pvalue as ks_log_pvalue
from ._brownian import ks_pvalue as ks_pvalue
from ._brownian import kuiper_log_pvalue as kuiper_log_pvalue
from ._brownian import kuiper_pvalue as kuiper_pvalue
from ._distributions import PoissonBinomial as PoissonBinomial
from ._multiple_testing import correct_pvalues as correct_pvalues
from ._schemes import Bootstrap as Bootstrap
from ._schemes import Consistency as Consistency
