from ._difference import DifferenceResult as DifferenceResult
from ._model_comparison import ModelComparison as ModelComparison
from ._models import compare_models as compare_models
from ._paired import paired_test as paired_test
from ._paired import unpaired_test as unpaired_test
from ._training import TrainingTrack as TrainingTrack
from ._training import track as track
