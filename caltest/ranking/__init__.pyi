from ._leaderboard import leaderboard as leaderboard
from ._leaderboard_state import LeaderboardState as LeaderboardState
from ._ranking import Leaderboard as Leaderboard
from ._ranking import RankedModel as RankedModel
from ._ranking import Ranking as Ranking
from ._sample_size import QuestionsNeeded as QuestionsNeeded
from ._unranked import Unranked as Unranked
from ._unranked import UnrankedModel as UnrankedModel
