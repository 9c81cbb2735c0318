from ._penalties import entropy_penalty as entropy_penalty
from ._penalties import mmce_loss as mmce_loss
from ._penalties import normalized_entropy as normalized_entropy
from ._penalties import uce_loss as uce_loss
